import assert from "node:assert/strict";
import fc from "fast-check";
import type { Policy, RoundContext, RoundOutcome } from "../../src/speculate/policy.ts";

const SEED = { seed: 20260712, numRuns: 300 };

/** What a round comes to. It runs with the steps that the policy picks, or `off` beside them. */
interface Drawn extends RoundContext {
  readonly accepted: readonly number[];
  readonly off: number;
}

/** Any outcome at all, also ones that the engine should never report. */
const drawn: fc.Arbitrary<Drawn> = fc.record({
  batchSize: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(64, 128, 100_000)),
  accepted: fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 6 }),
  off: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -7, max: 7 })),
});
const drawnRounds = fc.array(drawn, { maxLength: 120, size: "max" });
/** Rounds of one batch size that may be launched together. */
const drawnGroups = fc.array(
  fc.record({
    batchSize: drawn.map(({ batchSize }) => batchSize),
    rounds: fc.array(drawn.map(({ accepted }) => accepted), { minLength: 1, maxLength: 9 }),
  }),
  { maxLength: 30, size: "max" },
);

type AnyPolicy<State> = Policy<State, RoundContext, RoundOutcome>;

/** What every policy keeps to; the test of each policy calls it. */
export function policyContract<State>(name: string, make: () => AnyPolicy<State>): void {
  Deno.test(`policy contract: ${name} has its tiers ascending and distinct`, () => {
    const { tiers } = make();
    assert(tiers.length > 0);
    assert.deepEqual(tiers, [...new Set(tiers)].toSorted((a, b) => a - b));
  });

  Deno.test(`policy contract: ${name} picks its tiers only, after any outcomes`, () => {
    fc.assert(fc.property(drawnRounds, (all) => void play(make(), all)), SEED);
  });

  Deno.test(`policy contract: ${name} does the same again`, () => {
    fc.assert(
      fc.property(drawnRounds, (all) => {
        assert.deepEqual(play(make(), all), play(make(), all));
      }),
      SEED,
    );
  });

  Deno.test(`policy contract: ${name} reports a change exactly when a pick changes`, () => {
    fc.assert(
      fc.property(drawnRounds, (all) => {
        const policy = make();
        let state = policy.start;
        for (const each of all) {
          const before = policy.pick(state, each);
          const { state: next, change } = policy.learn(state, outcomeOf(policy, state, each));
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

  Deno.test(`policy contract: ${name} learns nothing from a round that was launched before a change`, () => {
    fc.assert(
      fc.property(drawnRounds, (all) => {
        const policy = make();
        let state = policy.start;
        for (const each of all) {
          const learned = policy.learn(state, outcomeOf(policy, state, each));
          if (each.off !== 0) assert.deepEqual(learned, { state });
          state = learned.state;
        }
      }),
      SEED,
    );
  });

  holdsContract(name, make);
}

/** What `holds` promises. */
function holdsContract<State>(name: string, make: () => AnyPolicy<State>): void {
  Deno.test(`policy contract: ${name} holds what it picks, whatever the rounds come to`, () => {
    fc.assert(
      fc.property(drawnRounds, (all) => {
        const policy = make();
        const { states } = play(policy, all);
        for (const [at, { batchSize }] of all.entries()) {
          let state = states[at] ?? policy.start;
          const pick = policy.pick(state, { batchSize });
          const holds = policy.holds(state, { batchSize });
          assert(holds >= 1 && (holds === Infinity || Number.isInteger(holds)));
          for (const { accepted } of all.slice(at, at + holds)) {
            assert.equal(policy.pick(state, { batchSize }), pick);
            state = policy.learn(state, { batchSize, numSteps: pick, accepted }).state;
          }
        }
      }),
      SEED,
    );
  });

  Deno.test(`policy contract: ${name} chooses the same in groups as round by round`, () => {
    fc.assert(
      fc.property(drawnGroups, (groups) => {
        const found = playGroups(make(), groups, Infinity);
        assert.deepEqual(found, playGroups(make(), groups, 1));
        assert.deepEqual(found, playGroups(make(), groups, 3));
      }),
      SEED,
    );
  });
}

/** Frozen inputs all the way; what was picked, and each state. */
function play<State>(
  policy: AnyPolicy<State>,
  all: readonly Drawn[],
): { picks: number[]; states: State[] } {
  const picks: number[] = [];
  const states: State[] = [];
  let state = deepFreeze(policy.start);
  for (const each of all) {
    const frozen = deepFreeze(outcomeOf(policy, state, each));
    const pick = policy.pick(state, frozen);
    assert(policy.tiers.includes(pick), `${pick} is none of ${policy.tiers}`);
    assert.equal(policy.pick(state, frozen), pick);
    picks.push(pick);
    state = deepFreeze(policy.learn(state, frozen).state);
    states.push(state);
  }
  return { picks, states };
}

/** What each round was picked at, with at most `most` launched before the first of them is learned. */
function playGroups<State>(
  policy: AnyPolicy<State>,
  groups: readonly {
    readonly batchSize: number;
    readonly rounds: readonly (readonly number[])[];
  }[],
  most: number,
): { picks: number[]; state: State } {
  const picks: number[] = [];
  let state = policy.start;
  for (const { batchSize, rounds } of groups) {
    for (let at = 0; at < rounds.length;) {
      const numSteps = policy.pick(state, { batchSize });
      const together = rounds.slice(at, at + Math.min(most, policy.holds(state, { batchSize })));
      for (const accepted of together) {
        picks.push(numSteps);
        state = policy.learn(state, { batchSize, numSteps, accepted }).state;
      }
      at += together.length;
    }
  }
  return { picks, state };
}

function outcomeOf<State>(policy: AnyPolicy<State>, state: State, each: Drawn): RoundOutcome {
  const { batchSize, accepted, off } = each;
  return { batchSize, accepted, numSteps: policy.pick(state, each) + off };
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
