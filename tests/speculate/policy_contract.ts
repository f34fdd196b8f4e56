import assert from "node:assert/strict";
import fc from "fast-check";
import type { Policy, RoundContext, RoundOutcome } from "../../src/speculate/policy.ts";

const SEED = { seed: 20260712, numRuns: 300 };

/** Any outcome at all, also ones that the engine should never report. */
const outcome: fc.Arbitrary<RoundOutcome> = fc.record({
  batchSize: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(64, 128, 100_000)),
  accepted: fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 6 }),
});
const outcomes = fc.array(outcome, { maxLength: 120, size: "max" });

/** What every policy keeps to; the test of each policy calls it. */
export function policyContract<State>(
  name: string,
  make: () => Policy<State, RoundContext, RoundOutcome>,
): void {
  Deno.test(`policy contract: ${name} has its tiers ascending and distinct`, () => {
    const { tiers } = make();
    assert(tiers.length > 0);
    assert.deepEqual(tiers, [...new Set(tiers)].toSorted((a, b) => a - b));
  });

  Deno.test(`policy contract: ${name} picks its tiers only, after any outcomes`, () => {
    fc.assert(fc.property(outcomes, (all) => void play(make(), all)), SEED);
  });

  Deno.test(`policy contract: ${name} does the same again`, () => {
    fc.assert(
      fc.property(outcomes, (all) => {
        assert.deepEqual(play(make(), all), play(make(), all));
      }),
      SEED,
    );
  });

  Deno.test(`policy contract: ${name} reports a change exactly when a pick changes`, () => {
    fc.assert(
      fc.property(outcomes, (all) => {
        const policy = make();
        let state = policy.start;
        for (const each of all) {
          const before = policy.pick(state, each);
          const { state: next, change } = policy.learn(state, each);
          const after = policy.pick(next, each);
          assert.deepEqual(
            change && [change.from, change.to],
            before === after ? undefined : [before, after],
          );
          state = next;
        }
      }),
      SEED,
    );
  });
}

/** Frozen inputs all the way; what was picked, and each state. */
function play<State>(
  policy: Policy<State, RoundContext, RoundOutcome>,
  outcomes: readonly RoundOutcome[],
): { picks: number[]; states: State[] } {
  const picks: number[] = [];
  const states: State[] = [];
  let state = deepFreeze(policy.start);
  for (const each of outcomes) {
    const frozen = deepFreeze(each);
    const pick = policy.pick(state, frozen);
    assert(policy.tiers.includes(pick), `${pick} is none of ${policy.tiers}`);
    assert.equal(policy.pick(state, frozen), pick);
    picks.push(pick);
    state = deepFreeze(policy.learn(state, frozen).state);
    states.push(state);
  }
  return { picks, states };
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
