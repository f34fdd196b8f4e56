import type { RoundContext, RoundOutcome } from "../../src/speculate/policy.ts";
import { chain } from "../../src/speculate/round_shape.ts";

/** A context of so many fresh requests, but for what is given. */
export function contextOf(batchSize: number, given: Partial<RoundContext> = {}): RoundContext {
  const length = Number.isInteger(batchSize) ? Math.max(0, Math.min(batchSize, 200)) : 0;
  return {
    batchSize,
    asked: Array(length).fill(undefined),
    sequences: Array.from({ length }, (_, id) => (
      { id, position: 20, depth: undefined, accepted: [], lag: 0 }
    )),
    roundsPerSync: 1,
    costs: undefined,
    ranks: false,
    ...given,
  };
}

/** A round in which the requests had so many drafts accepted. */
export function outcomeOf(
  { batchSize, numSteps, accepted, ...given }:
    & {
      readonly batchSize: number;
      readonly numSteps: number;
      readonly accepted: readonly number[];
    }
    & Partial<RoundOutcome>,
): RoundOutcome {
  return {
    tier: chain(numSteps),
    batchSize,
    sequences: accepted.map((count, id) => (
      { id, asked: undefined, depth: numSteps, accepted: count, confidences: [], position: 20 }
    )),
    ms: { round: 3, catchUp: 0 },
    ...given,
  };
}
