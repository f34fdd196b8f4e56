import type { Constraint } from "../../../grammar/constraint.ts";
import { isChain } from "../../../speculate/round_shape.ts";
import { NO_PROPOSAL, type Proposal } from "../../../speculate/trees.ts";
import type { Capacity } from "../../device/buffers.ts";
import type { HostRound } from "./proposing.ts";
import type { RequestState } from "../request_state.ts";

type Constrained = Pick<RequestState, "constraint" | "output" | "request">;

/**
 * A group of rounds under the grammars of its requests: one round, whose choices are masked. Drafts of
 * the host lose what is not allowed; where the grammars force more tokens than the device would draft,
 * those are verified instead.
 *
 * @param of.vocabSize of the target.
 */
export function constrained(
  states: readonly Constrained[],
  asked: HostRound,
  { capacity, vocabSize }: {
    readonly capacity: Pick<Capacity, "shapes">;
    readonly vocabSize: number;
  },
): HostRound {
  if (states.every(({ constraint }) => constraint === undefined)) return asked;
  const round = drafted(states, { ...asked, count: 1 }, capacity);
  const { rows } = round.shape;
  const maskFor = (proposals: readonly Proposal[]) =>
    masksOf(states.map(({ constraint }) => constraint), proposals, { rows, vocabSize });
  return { ...round, maskFor };
}

/** The round with what is to be verified as far as the host knows it. */
function drafted(
  states: readonly Constrained[],
  asked: HostRound,
  capacity: Pick<Capacity, "shapes">,
): HostRound {
  if (asked.proposals) {
    const { depth } = asked.shape;
    const proposals = asked.proposals.map((proposal, i) => {
      const state = states[i] as Constrained;
      // What the device drafts is not known yet: its masks end it where it is not allowed.
      if (proposal === undefined) return undefined;
      const kept = state.constraint?.pruned(proposal) ?? proposal;
      if (kept.tokens.length === 0) return forcedOf(state, depth);
      return { ...kept, ...proposal.predicted && { predicted: true } };
    });
    return { ...asked, proposals };
  }
  const chains = capacity.shapes.filter(isChain).toSorted((a, b) => a.depth - b.depth);
  const deepest = chains.at(-1)?.depth ?? 0;
  const proposals = states.map((state) => forcedOf(state, deepest));
  const counts = proposals.map(({ tokens }) => tokens.length);
  const count = counts.reduce((a, b) => a + b, 0);
  if (count === 0 || count < states.length * asked.shape.depth) return asked;
  const shape = chains.find(({ depth }) => depth >= Math.max(...counts)) ?? asked.shape;
  const { depths: _depths, verify: _verify, ...rest } = asked;
  return { ...rest, shape, proposals };
}

/** What its grammar forces of a request, as far as it may become output. */
function forcedOf({ constraint, output, request }: Constrained, depth: number): Proposal {
  if (constraint === undefined || request.numSteps === 0) return NO_PROPOSAL;
  return constraint.forced(Math.min(depth, output.left - 1));
}

/** As `RoundsAsked.masks`. */
function masksOf(
  constraints: readonly (Constraint | undefined)[],
  proposals: readonly Proposal[],
  { rows, vocabSize }: { readonly rows: number; readonly vocabSize: number },
): Uint32Array {
  const words = rows * Math.ceil(vocabSize / 32);
  const masks = new Uint32Array(constraints.length * words).fill(0xffffffff);
  for (const [i, constraint] of constraints.entries()) {
    const into = masks.subarray(i * words, (i + 1) * words);
    constraint?.fill(proposals[i] ?? NO_PROPOSAL, into);
  }
  return masks;
}
