import {
  RECENT_ROUNDS,
  type RoundContext,
  type RoundOutcome,
  type RoundTimes,
  type SequenceContext,
  type SequenceOutcome,
} from "../../../speculate/policy.ts";
import { type DraftShape, isChain } from "../../../speculate/round_shape.ts";
import type { RoundResult, SequenceResult } from "../../device/round_result.ts";
import { askedSteps, type RequestState } from "../request_state.ts";

/** What a context has besides the requests of the round. */
export type RoundSurroundings = Pick<
  RoundContext,
  "waiting" | "freePages" | "totalPages" | "roundsPerSync" | "costs" | "ranks" | "mostMs"
>;

/** What a policy chooses the next round by. `sequences` is made only if the policy reads it. */
export function roundContext(
  states: readonly RequestState[],
  surroundings: RoundSurroundings,
): RoundContext {
  let sequences: readonly SequenceContext[] | undefined;
  return {
    ...surroundings,
    batchSize: states.length,
    asked: askedSteps(states),
    get sequences() {
      return sequences ??= states.map(sequenceContext);
    },
  };
}

function sequenceContext({ id, sequence, draftHistory }: RequestState): SequenceContext {
  const { stored, draftStored } = sequence;
  const { depth, accepted, confidences } = draftHistory;
  return {
    id,
    position: stored,
    depth,
    accepted: [...accepted],
    confidences,
    lag: stored - draftStored,
  };
}

/**
 * The result of a round that the policy chose, before its tokens are added to the sequences.
 *
 * @param taking the requests that it returned tokens for.
 */
export function roundOutcome(
  round: Pick<RoundOutcome, "tier" | "batchSize" | "waiting" | "roundsPerSync" | "drafts">,
  taking: readonly { readonly state: RequestState; readonly result: SequenceResult }[],
  times: Times,
): RoundOutcome {
  const { tier } = round;
  const sequences = taking.map(({ state, result }) => sequenceOutcome(state, result, tier));
  return { ...round, sequences, ms: roundTimes(times) };
}

/** What the round did for a request; it is also stored in the request's history, which later contexts contain. */
function sequenceOutcome(
  { id, request, output, draftHistory }: RequestState,
  { drafts, accepted, confidences = [] }: SequenceResult,
  tier: DraftShape,
): SequenceOutcome {
  const depth = isChain(tier) ? drafts.length : tier.depth;
  draftHistory.depth = depth;
  draftHistory.accepted.push(accepted);
  if (draftHistory.accepted.length > RECENT_ROUNDS) draftHistory.accepted.shift();
  const position = request.promptIds.length + output.tokens - 1;
  draftHistory.confidences = confidences;
  return { id, asked: request.numSteps, depth, accepted, confidences, position };
}

/** Milliseconds of a round. */
interface Times extends Omit<RoundResult, "sequences"> {
  /** Wall time. */
  readonly ms: number;
  /** See RoundTimes. */
  readonly catchUpMs: number;
}

function roundTimes(
  { draftMs: draft, verifyMs: verify, extendMs: extend, ms: round, catchUpMs: catchUp }: Times,
): RoundTimes {
  const device = draft + verify + extend;
  return {
    round,
    draft,
    verify,
    extend,
    host: device > 0 ? Math.max(0, round - device) : 0,
    catchUp,
  };
}
