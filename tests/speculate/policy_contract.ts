import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import type {
  Decision,
  Plain,
  Policy,
  RoundContext,
  RoundOutcome,
  RoundTimes,
  SequenceContext,
  VerifyBudget,
} from "../../src/speculate/policy.ts";
import { COST_FORMAT, type CostTable } from "../../src/speculate/costs/table.ts";
import { allowedSteps } from "../../src/speculate/asked_steps.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";

const RUNS = { seed: 20260712, numRuns: EXHAUSTIVE ? 150 : 15 };
/** The largest depth of any policy. */
const DEEPEST = 7;

/** A round: what is known before it, and its outcome. */
interface Drawn {
  readonly context: RoundContext;
  /** Accepted drafts reported for each sequence, whatever it drafted. */
  readonly accepted: readonly number[];
  readonly confidences: readonly (readonly number[])[];
  readonly ms: RoundTimes;
  /** How far the steps that ran differ from the steps that were picked. */
  readonly off: number;
}

const count = fc.integer({ min: 0, max: 9 });
/** Values that no engine should report. */
const absurd = fc.constantFrom(NaN, Infinity, -Infinity, -1, 1e308, 0.5);

function orAbsurd(usual: fc.Arbitrary<number>): fc.Arbitrary<number> {
  return fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: absurd });
}

/** A round costs 1 ms plus 0.2 ms a draft level, and more above 16 rows. */
const COSTS: CostTable = {
  format: COST_FORMAT,
  adapter: "none",
  model: "none",
  draft: "none",
  buckets: [1, 2, 4, 8, 16, 32, 64, 128],
  level: [{ at: 1, ms: 0.2 }, { at: 128, ms: 0.4 }],
  verify: [{ at: 1, ms: 1 }, { at: 16, ms: 1.1 }, { at: 1024, ms: 20 }],
  perCell: 1e-5,
  extend: [{ at: 1, ms: 0.2 }, { at: 1024, ms: 1 }],
  catchUp: [{ at: 1, ms: 0.3 }, { at: 1024, ms: 4 }],
  prefill: [{ at: 1, ms: 1 }, { at: 1024, ms: 40 }],
  host: 0.1,
  fitError: 0,
};

const millis = orAbsurd(fc.double({ min: 0, max: 200, noNaN: true }));
const drawnMs: fc.Arbitrary<RoundTimes> = fc.record({ round: millis, catchUp: millis });
const drawnSequence: fc.Arbitrary<SequenceContext & { readonly asked: number | undefined }> = fc
  .record({
    id: fc.integer({ min: 0, max: 30 }),
    position: orAbsurd(fc.integer({ min: 0, max: 1000 })),
    depth: fc.option(orAbsurd(count), { nil: undefined }),
    accepted: fc.array(orAbsurd(count), { maxLength: 8 }),
    lag: orAbsurd(count),
    asked: fc.constantFrom(undefined, undefined, undefined, 0, 2, DEEPEST),
  });
const drawnContext: fc.Arbitrary<RoundContext> = fc.record({
  drawn: fc.array(drawnSequence, { maxLength: 6 }),
  /** How often the drawn sequences are repeated in the batch. */
  times: fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, fc.constantFrom(3, 20)),
  roundsPerSync: orAbsurd(fc.integer({ min: 1, max: 8 })),
  costs: fc.constantFrom(undefined, COSTS),
  ranks: fc.boolean(),
  maxMs: fc.constantFrom(undefined, Infinity, 1.5, 0),
}).map(({ drawn, times, ...rest }) => {
  const all = Array.from({ length: times }, () => drawn).flat();
  return {
    ...rest,
    batchSize: all.length,
    asked: all.map(({ asked }) => asked),
    sequences: all.map(({ asked: _, ...sequence }) => sequence),
  };
});
const drawnConfidences = fc.array(orAbsurd(fc.double({ min: 0, max: 1, noNaN: true })), {
  maxLength: 7,
});
const drawn: fc.Arbitrary<Drawn> = fc.record({
  context: drawnContext,
  accepted: fc.array(orAbsurd(count), { maxLength: 6 }),
  confidences: fc.array(drawnConfidences, { maxLength: 6 }),
  ms: drawnMs,
  off: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -7, max: 7 })),
});
const manyRounds = fc.array(drawn, { maxLength: 80, size: "max" });
const drawnRounds = drawing(manyRounds);
const drawnSeeds = drawing(fc.tuple(manyRounds, fc.integer({ min: 0, max: 2 ** 32 - 1 })));
/** Groups of rounds with one context, which may be launched together. */
const drawnGroups = drawing(fc.array(
  fc.record({ context: drawnContext, rounds: fc.array(drawn, { minLength: 1, maxLength: 9 }) }),
  { maxLength: 20, size: "max" },
));

interface Drawing<T> {
  readonly arbitrary: fc.Arbitrary<T>;
  /** The samples that fast-check draws, frozen. */
  readonly samples: readonly T[];
}

/** Draws samples once for all policies: most policies play a sample in less time than it takes to draw one. */
function drawing<T>(arbitrary: fc.Arbitrary<T>): Drawing<T> {
  return { arbitrary, samples: fc.sample(arbitrary, RUNS).map(deepFreeze) };
}

/** @throws fast-check's report of the smallest sample that it finds for which `holds` throws. */
function forAll<T>({ arbitrary, samples }: Drawing<T>, holds: (sample: T) => void): void {
  for (const sample of samples) {
    try {
      holds(sample);
    } catch (error) {
      fc.assert(fc.property(arbitrary, holds), RUNS);
      throw error;
    }
  }
}

/**
 * Tests that every policy must pass. The registry's test calls this for all policies with their examples,
 * so that a new policy is tested without further code.
 *
 * @param make makes the policy with a seed for its random draws.
 */
export function policyContract<State>(name: string, make: (seed: number) => Policy<State>): void {
  const played = remembered((all: readonly Drawn[]) => play(make(1), all));

  Deno.test(`policy contract: ${name} has its tiers rising and distinct`, () => {
    const steps = make(1).tiers.map(({ depth }) => depth);
    assert(steps.length > 0);
    assert.deepEqual(steps, [...new Set(steps)].toSorted((a, b) => a - b));
  });

  Deno.test(`policy contract: ${name} picks what it says, touches nothing, after any outcomes`, () => {
    forAll(drawnRounds, (all) => void played(all));
  });

  Deno.test(`policy contract: ${name} does the same again, for any seed`, () => {
    forAll(drawnSeeds, ([all, seed]) => {
      assert.deepEqual(play(make(seed), all), play(make(seed), all));
    });
  });

  Deno.test(`policy contract: ${name} has a state that can be written down`, () => {
    forAll(drawnRounds, (all) => {
      const state = played(all).states.at(-1);
      assert.deepEqual(structuredClone(state), state);
    });
  });

  Deno.test(`policy contract: ${name} reports plain data without NaN`, () => {
    forAll(drawnRounds, (all) => {
      const policy = make(1);
      for (const state of [policy.start, ...played(all).states]) {
        const { json, rows } = policy.report(state);
        assertFinite(json, "json");
        assert.deepEqual(JSON.parse(JSON.stringify(json)), json);
        for (const row of rows) {
          assert(row.length === 2 && row[0].length <= 11, `"${row[0]}" has no column after it`);
          assert.doesNotMatch(row[1], /NaN|Infinity|undefined|\n/);
        }
      }
    });
  });

  Deno.test(`policy contract: ${name} tells of changes as they are`, () => {
    forAll(drawnRounds, (all) => {
      const policy = make(1);
      let state = policy.start;
      for (const each of all) {
        const before = policy.pick(state, each.context);
        const { state: next, change } = policy.learn(state, outcomeFor(before, each));
        if (change) {
          // A change is one for requests that ask for nothing in particular.
          const free = { ...each.context, asked: each.context.asked.map(() => undefined) };
          const depths = [state, next].map((each) => policy.pick(each, free).tier.depth);
          assert.deepEqual([change.from, change.to], depths);
        }
        state = next;
      }
    });
  });

  Deno.test(`policy contract: ${name} chooses among its steps that requests ask for`, () => {
    forAll(drawnRounds, (all) => {
      const policy = make(1);
      const steps = policy.tiers.map(({ depth }) => depth);
      // A policy with one tier leaves it to the engine to limit that, or takes what is asked for.
      if (steps.length === 1) return;
      for (const most of [1, 2, 4, 6]) {
        const allowed = allowedSteps(steps, [most]);
        let state = policy.start;
        for (const each of all) {
          const asked = Array<number>(each.context.batchSize).fill(most);
          const round = { ...each, off: 0, context: { ...each.context, asked } };
          const pick = policy.pick(state, round.context);
          const { depth } = pick.tier;
          assert(allowed.includes(depth) || asked.length === 0, `${depth} is none of ${allowed}`);
          state = policy.learn(state, outcomeFor(pick, round)).state;
        }
      }
    });
  });

  holdsContract(name, make, played);
}

/** Tests of the promise that `Policy.holds` makes. */
function holdsContract<State>(
  name: string,
  make: (seed: number) => Policy<State>,
  played: (all: readonly Drawn[]) => Played<State>,
): void {
  Deno.test(`policy contract: ${name} holds what it picks, whatever the rounds come to`, () => {
    forAll(drawnRounds, (all) => {
      const policy = make(1);
      const { states } = played(all);
      for (const [at, { context }] of all.entries()) {
        let state = states[at] ?? policy.start;
        const pick = policy.pick(state, context);
        const holds = policy.holds(state, context);
        assert(holds >= 1 && (holds === Infinity || Number.isInteger(holds)), `holds ${holds}`);
        for (const each of all.slice(at, at + Math.min(holds, 12))) {
          assert.deepEqual(policy.pick(state, context), pick);
          const round = { ...each, context, off: 0 };
          state = policy.learn(state, outcomeFor(pick, round)).state;
        }
      }
    });
  });

  Deno.test(`policy contract: ${name} chooses the same in groups as round by round`, () => {
    forAll(drawnGroups, (groups) => {
      const found = playGroups(make(1), groups, Infinity);
      assert.deepEqual(found, playGroups(make(1), groups, 1));
      assert.deepEqual(found, playGroups(make(1), groups, 3));
    });
  });
}

/** The pick of each round, and the state after the round. */
interface Played<State> {
  readonly picks: readonly Decision[];
  readonly states: readonly State[];
}

/** Memoizes a function by the identity of its argument. */
function remembered<Key extends object, Value>(of: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => known.getOrInsertComputed(key, of);
}

/** Plays all rounds with deeply frozen inputs and states. */
function play<State>(policy: Policy<State>, all: readonly Drawn[]): Played<State> {
  const picks: Decision[] = [];
  const states: State[] = [];
  let state = deepFreeze(policy.start);
  for (const each of all) {
    const context = deepFreeze(each.context);
    const pick = policy.pick(state, context);
    assertKnown(policy, context, pick);
    assert.deepEqual(policy.pick(state, context), pick);
    picks.push(pick);
    state = deepFreeze(policy.learn(state, deepFreeze(outcomeFor(pick, each))).state);
    states.push(state);
  }
  return { picks, states };
}

/** Asserts that a pick is one of the tiers or a requested depth, with per-sequence depths that the round allows. */
function assertKnown<State>(
  { tiers, confident, packed }: Policy<State>,
  { asked, batchSize, ranks }: RoundContext,
  { tier: { depth: numSteps }, depths, verify }: Decision,
): void {
  const known = [...tiers.map((tier) => tier.depth), ...asked, ...batchSize === 0 ? [0] : []];
  assert(known.includes(numSteps), `${numSteps} is none of ${known}`);
  assert(packed || (depths ?? verify) === undefined, "rounds that are not compiled at start");
  assert(confident || verify === undefined, "a budget without the draft's confidences");
  if (verify !== undefined) assertBudget(verify, { batchSize, ranks, numSteps });
  if (depths === undefined) return;
  assert(verify === undefined, "depths and a budget");
  assert.equal(depths.length, batchSize);
  for (const depth of depths) {
    assert(Number.isInteger(depth) && depth >= 0 && depth <= numSteps, `depth ${depth}`);
  }
}

/** Asserts that a budget has finite numbers, and that the draft tells its confidence, without which there is none. */
function assertBudget(
  { drafts, slope, intercepts, minConfidence }: VerifyBudget,
  { batchSize, ranks, numSteps }: {
    readonly batchSize: number;
    readonly ranks: boolean;
    readonly numSteps: number;
  },
): void {
  assert(ranks, "a budget, but the draft tells no confidence");
  assert(Number.isInteger(drafts) && drafts >= 0 && drafts <= batchSize * numSteps);
  assert.equal(intercepts.length, numSteps);
  for (const number of [slope, minConfidence, ...intercepts]) assert(Number.isFinite(number));
}

/** The picks of all rounds. At most `most` rounds are launched together before the policy learns their outcomes. */
function playGroups<State>(
  policy: Policy<State>,
  groups: readonly { readonly context: RoundContext; readonly rounds: readonly Drawn[] }[],
  most: number,
): { picks: Decision[]; state: State } {
  const picks: Decision[] = [];
  let state = policy.start;
  for (const { context, rounds } of groups) {
    for (let at = 0; at < rounds.length;) {
      const pick = policy.pick(state, context);
      const together = rounds.slice(at, at + Math.min(most, policy.holds(state, context)));
      for (const each of together) {
        picks.push(pick);
        state = policy.learn(state, outcomeFor(pick, { ...each, context, off: 0 })).state;
      }
      at += together.length;
    }
  }
  return { picks, state };
}

function outcomeFor(
  { tier, depths }: Decision,
  { context, accepted, confidences, ms, off }: Drawn,
): RoundOutcome {
  const { batchSize, asked, sequences } = context;
  const numSteps = tier.depth + off;
  return {
    tier: chain(numSteps),
    batchSize,
    ms,
    sequences: accepted.map((count, i) => ({
      id: sequences[i]?.id ?? i,
      asked: asked[i] === 0 ? undefined : asked[i],
      depth: depths?.[i] ?? numSteps,
      accepted: count,
      confidences: confidences[i] ?? [],
      position: sequences[i]?.position ?? 0,
    })),
  };
}

/** @param path where the value is in the report. */
function assertFinite(value: Plain, path: string): void {
  if (typeof value === "number") {
    assert(
      Number.isFinite(value),
      `its report has ${path} ${value}: outcomes may have such numbers`,
    );
  } else if (typeof value === "object" && value !== null) {
    for (const [key, each] of Object.entries(value)) assertFinite(each, `${path}.${key}`);
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
