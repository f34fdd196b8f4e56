import type { PolicyKind } from "../../../../src/speculate/policies/kind.ts";
import type { Policy, PolicyRandom, RoundContext } from "../../../../src/speculate/policy.ts";
import { contextOf, outcomeOf } from "../../rounds.ts";

export const BUCKETS: readonly number[] = [1, 4, 16];

/** Uniform numbers by purpose within a bucket. A number that is left out is 0.999. */
export function drawing(...uniform: readonly number[]): PolicyRandom {
  return (_, purpose) => Math.floor((uniform[purpose % 128] ?? 0.999) * 2 ** 32);
}

export function opened<Options>(
  kind: PolicyKind<Options>,
  options: unknown,
  random: PolicyRandom = drawing(),
): Policy {
  return kind.open(options, { buckets: BUCKETS, random });
}

/** The state after rounds with the given tokens a millisecond, for one sequence and bucket. */
export function after(
  policy: Policy,
  rounds: readonly (readonly [numSteps: number, rate: number])[],
  { batchSize = 1, from = policy.start }: { readonly batchSize?: number; readonly from?: unknown } =
    {},
): unknown {
  return rounds.reduce<unknown>((state, [numSteps, rate]) => (
    policy.learn(state, rated({ batchSize, numSteps, rate })).state
  ), from);
}

/** A round in which every sequence gets only the bonus token, at the given tokens a millisecond. */
function rated(
  { batchSize, numSteps, rate }: {
    readonly batchSize: number;
    readonly numSteps: number;
    readonly rate: number;
  },
) {
  const ms = { round: batchSize / rate, catchUp: 0 };
  return outcomeOf({ batchSize, numSteps, accepted: Array(batchSize).fill(0), ms });
}

export function depthOf(
  policy: Policy,
  state: unknown,
  batchSize = 1,
  given: Partial<RoundContext> = {},
): number {
  return policy.pick(state, contextOf(batchSize, given)).tier.depth;
}
