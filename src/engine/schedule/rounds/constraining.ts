import { isChain } from "../../../speculate/round_shape.ts";
import { NO_PROPOSAL, type Proposal } from "../../../speculate/trees.ts";
import type { EngineSizes } from "../../device/buffers.ts";
import type { HostProposal } from "../../../draft/host_drafter.ts";
import type { HostRound } from "./proposing.ts";
import type { Requests } from "../requests.ts";
import { type RequestState, stepsOf } from "../request_state.ts";

/** What this needs of the engine. */
interface Parts extends Pick<Requests, "attempt"> {
  readonly capacity: Pick<EngineSizes, "shapes">;
  /** Vocabulary size of the target. */
  readonly vocabSize: number;
}

/**
 * Applies the grammars of the requests to a group of rounds, which becomes one round with masked choices. The host's
 * drafts lose tokens that are not allowed. If the grammars force at least as many tokens as the device would draft, the
 * forced tokens are verified instead.
 *
 * A request whose grammar fails here has ended, and the round must not be run.
 */
export function constrained(
  states: readonly RequestState[],
  asked: HostRound,
  { capacity, vocabSize, attempt }: Parts,
): HostRound {
  if (states.every(({ constraint }) => constraint === undefined)) return asked;
  const round = drafted(states, { ...asked, count: 1 }, { capacity, attempt });
  const { rows } = round.shape;
  const maskFor = (proposals: readonly Proposal[]) =>
    masksOf(states, proposals, { rows, vocabSize });
  return { ...round, maskFor };
}

/** The round with the drafts that the host knows: proposals, or tokens that the grammars force. */
function drafted(
  states: readonly RequestState[],
  asked: HostRound,
  { capacity, attempt }: Omit<Parts, "vocabSize">,
): HostRound {
  const drafts = (state: RequestState, of: () => HostProposal) => {
    let proposal: HostProposal = NO_PROPOSAL;
    attempt(state, () => void (proposal = of()));
    return proposal;
  };
  if (asked.proposals) {
    const { depth } = asked.shape;
    const proposals = asked.proposals.map((proposal, i) => {
      const state = states[i] as RequestState;
      // The device's drafts are not known yet: their masks reject what is not allowed.
      if (proposal === undefined) return undefined;
      return drafts(state, () => {
        const kept = state.constraint?.pruned(proposal) ?? proposal;
        if (kept.tokens.length === 0) return forcedOf(state, depth);
        return { ...kept, ...proposal.predicted && { predicted: true } };
      });
    });
    return { ...asked, proposals };
  }
  const chains = capacity.shapes.filter(isChain).toSorted((a, b) => a.depth - b.depth);
  const deepest = chains.at(-1)?.depth ?? 0;
  const proposals = states.map((state) => drafts(state, () => forcedOf(state, deepest)));
  const counts = proposals.map(({ tokens }) => tokens.length);
  const count = counts.reduce((a, b) => a + b, 0);
  if (count === 0 || count < states.length * asked.shape.depth) return asked;
  const shape = chains.find(({ depth }) => depth >= Math.max(...counts)) ?? asked.shape;
  const { depths: _depths, verify: _verify, ...rest } = asked;
  return { ...rest, shape, proposals };
}

/** The next tokens that a request's grammar forces, as far as they may become output. */
function forcedOf(state: RequestState, depth: number): Proposal {
  const { constraint, output } = state;
  if (constraint === undefined || stepsOf(state) === 0) return NO_PROPOSAL;
  return constraint.forced(Math.min(depth, output.left - 1));
}

/**
 * Masks as in `RoundRequest.maskFor`. The device already runs the round: a request whose grammar fails here is allowed
 * every token, and ends when it would take one.
 */
function masksOf(
  states: readonly RequestState[],
  proposals: readonly Proposal[],
  { rows, vocabSize }: { readonly rows: number; readonly vocabSize: number },
): Uint32Array {
  const words = rows * Math.ceil(vocabSize / 32);
  const masks = new Uint32Array(states.length * words).fill(0xffffffff);
  for (const [i, state] of states.entries()) {
    const into = masks.subarray(i * words, (i + 1) * words);
    try {
      state.constraint?.fill(proposals[i] ?? NO_PROPOSAL, into);
    } catch (thrown) {
      state.failure ??= { thrown };
      into.fill(0xffffffff);
    }
  }
  return masks;
}
