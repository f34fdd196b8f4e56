import {
  RECENT_ROUNDS,
  type RoundContext,
  type RoundOutcome,
  type SequenceContext,
  type SequenceOutcome,
} from "../../../speculate/policy.ts";
import { type DraftShape, isChain } from "../../../speculate/round_shape.ts";
import type { SequenceResult } from "../../device/round_result.ts";
import { type RequestState, stepsOf } from "../request_state.ts";

/** What a context has besides the requests of the round. */
export type RoundSurroundings = Pick<
  RoundContext,
  "roundsPerSync" | "costs" | "ranks" | "maxMs"
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
    asked: states.map(stepsOf),
    get sequences() {
      return sequences ??= states.map(sequenceContext);
    },
  };
}

function sequenceContext({ id, sequence, draftHistory }: RequestState): SequenceContext {
  const { stored, draftStored } = sequence;
  const { depth, accepted } = draftHistory;
  return {
    id,
    position: stored,
    depth,
    accepted: [...accepted],
    lag: stored - draftStored,
  };
}

/**
 * The result of a round that the policy chose, before its tokens are added to the sequences.
 *
 * @param taking the requests that it returned tokens for.
 */
export function roundOutcome(
  round: Pick<RoundOutcome, "tier" | "batchSize" | "roundsPerSync" | "drafts" | "ms">,
  taking: readonly { readonly state: RequestState; readonly result: SequenceResult }[],
): RoundOutcome {
  const sequences = taking.map(({ state, result }) => sequenceOutcome(state, result, round.tier));
  return { ...round, sequences };
}

/** What the round did for a request; it is also stored in the request's history, which later contexts contain. */
function sequenceOutcome(
  state: RequestState,
  { drafts, accepted, confidences = [] }: SequenceResult,
  tier: DraftShape,
): SequenceOutcome {
  const { id, request, output, draftHistory } = state;
  const depth = isChain(tier) ? drafts.length : tier.depth;
  draftHistory.depth = depth;
  draftHistory.accepted.push(accepted);
  if (draftHistory.accepted.length > RECENT_ROUNDS) draftHistory.accepted.shift();
  const position = request.promptIds.length + output.tokens - 1;
  return { id, asked: stepsOf(state), depth, accepted, confidences, position };
}
