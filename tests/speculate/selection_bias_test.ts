import assert from "node:assert/strict";
import { policyRandom } from "../../src/speculate/noise.ts";
import { POLICIES } from "../../src/speculate/policies/registry.ts";
import { type Policy, PolicyError } from "../../src/speculate/policy.ts";
import { costsOf } from "./policies/goodput/costs.ts";
import { byHighest, bySampled, type Cut, cutLaw, outputLaw, type Toy, toys } from "./toy_laws.ts";
import { contextOf, outcomeOf } from "./rounds.ts";

// Which drafts are verified must not depend on the drafts themselves: under rejection sampling the
// output has the target's law only if the decision to verify a draft uses nothing but what was known
// before it was drawn. Here every draft and every coin is enumerated, so that nothing is left to chance.

/** Tolerance for rounding errors in sums of doubles. */
const EXACT = 1e-12;

function distance(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, each, i) => sum + Math.abs(each - (b[i] ?? 0)), 0) / 2;
}

Deno.test("selection bias: a draft verified only where it is likely itself changes the law", () => {
  const [p, q] = [[1 / 3, 2 / 3], [2 / 3, 1 / 3]];
  const law = cutLaw({ p, q }, (token) => (q[token] ?? 0) >= 0.5);
  assert(distance(law, [4 / 9, 5 / 9]) < EXACT, `${law}`);
  for (const verified of [true, false]) {
    assert(distance(cutLaw({ p, q }, () => verified), p) < EXACT);
  }
});

Deno.test("selection bias: ranking by the sampled tokens' probabilities changes the law", () => {
  const found = toys(20).map((toy) => distance(lawWith(toy, bySampled), toy.law));
  const biased = found.filter((each) => each > 1e-4);
  assert(biased.length >= 15, `${found}`);
});

Deno.test("selection bias: ranking by the highest probabilities, or by history, does not", () => {
  const byHistory: Cut = (chains, { drafts }) => chains.map((_, i) => i === 0 ? drafts : 0);
  for (const toy of toys(20)) {
    assert(distance(lawWith(toy, byHighest), toy.law) < EXACT);
    assert(distance(lawWith(toy, byHistory), toy.law) < EXACT);
  }
});

/** The output's law if two requests draft two tokens each and two of the four are verified. */
function lawWith(toy: Toy, cut: Cut): number[] {
  const verify = { drafts: 2, slope: 1, intercepts: [0, 0], minConfidence: 0 };
  const always: Policy<null> = {
    tiers: [],
    start: null,
    pick: (_, { batchSize }) => ({
      tier: { depth: 2, width: 1, rows: 3 },
      verify: { ...verify, drafts: batchSize },
    }),
    holds: () => 1,
    learn: (state) => ({ state }),
    report: () => ({ json: {}, rows: [] }),
  };
  return outputLaw(toy, always, { state: null, cut, ranks: true });
}

/** Options with which a policy drafts at most two tokens, so that all can be enumerated. */
const OPTIONS: Readonly<Record<string, readonly unknown[]>> = {
  tetris: [{ num_steps: 2, capacity: 2 }],
  "p-min": [{ num_steps: 2, p_min: 0.6 }],
};
const USUAL_OPTIONS: readonly unknown[] = [
  { steps: [0, 1, 2] },
  { steps: [1, 2] },
  { num_steps: 2 },
  { "1": { candidate_steps: [0, 1, 2] } },
  {},
];

for (const name of Object.keys(POLICIES)) {
  Deno.test(`selection bias: ${name} leaves the law as it is`, () => {
    const policy = shallow(name);
    for (const ranks of [false, true]) {
      for (const toy of toys(3)) {
        const state = experienced(policy, ranks);
        const law = outputLaw(toy, policy, { state, cut: byHighest, ranks, costs: DEAR });
        assert(distance(law, toy.law) < EXACT, `${law} is not ${toy.law}`);
      }
    }
  });
}

Deno.test("selection bias: policies do cut drafts here, and a wrong rank of them is found", () => {
  for (const name of ["tetris", "adaptive-verify", "hybrid"]) {
    const policy = shallow(name);
    const state = experienced(policy, true);
    const given = { state, ranks: true, costs: DEAR };
    const found = toys(10).map((toy) =>
      distance(outputLaw(toy, policy, { ...given, cut: bySampled }), toy.law)
    );
    assert(Math.max(...found) > 1e-3, `${name}: ${found}`);
  }
});

/** Costs with such expensive rows that few drafts are worth verifying. */
const DEAR = costsOf({ row: 0.3, level: 0.01, catchUp: 0 });

function shallow(name: string): Policy {
  const kind = POLICIES[name];
  for (const options of OPTIONS[name] ?? USUAL_OPTIONS) {
    try {
      const policy = kind?.open(options, { buckets: [1, 2], random: policyRandom(5) });
      if (policy && policy.tiers.every(({ depth }) => depth <= 2)) return policy;
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
    }
  }
  throw new Error(`"${name}" has no options in this test with which it drafts 2 tokens at most`);
}

/** The policy's state after rounds in which request 0 was guessed well and request 1 was not. */
function experienced(policy: Policy, ranks: boolean): unknown {
  let state = policy.start;
  for (let round = 0; round < 24; round++) {
    const { tier } = policy.pick(state, contextOf(2, { costs: DEAR, ranks }));
    const numSteps = tier.depth;
    const accepted = [numSteps, round % 3 === 0 ? Math.min(1, numSteps) : 0];
    const outcome = outcomeOf({ batchSize: 2, numSteps, accepted });
    const sequences = outcome.sequences.map((each) => ({
      ...each,
      confidences: ranks ? [0.9, 0.6].slice(0, numSteps) : [],
    }));
    state = policy.learn(state, { ...outcome, sequences }).state;
  }
  return state;
}

/** The fields of a sequence that a policy may read. None depends on tokens that the coming round draws. */
const BEFORE = ["id", "position", "depth", "accepted", "lag"];
const AFTER = ["id", "asked", "depth", "accepted", "confidences", "position"];

Deno.test("selection bias: policies read nothing but the interface's fields", () => {
  for (const name of Object.keys(POLICIES)) {
    const policy = shallow(name);
    let state = policy.start;
    for (let round = 0; round < 40; round++) {
      const plain = contextOf(2, {
        ranks: round % 2 === 0,
        costs: round % 3 === 0 ? DEAR : undefined,
      });
      const context = { ...plain, sequences: plain.sequences.map((each) => watched(each, BEFORE)) };
      const { tier: { depth: numSteps } } = policy.pick(state, context);
      assert(policy.holds(state, context) >= 1);
      const outcome = outcomeOf({ batchSize: 2, numSteps, accepted: [numSteps, 0] });
      const sequences = outcome.sequences.map((each) => watched(each, AFTER));
      state = policy.learn(state, { ...outcome, sequences }).state;
    }
  }
});

/** A proxy that throws if another field is read, or tested for with `in`. */
function watched<T extends object>(given: T, known: readonly string[]): T {
  const fails = (field: string | symbol) => {
    throw new Error(`it reads "${String(field)}"`);
  };
  return new Proxy({ ...given, tokens: [1, 2], probabilities: [0.2, 0.9] }, {
    get: (target, field, receiver) =>
      typeof field === "string" && known.includes(field)
        ? Reflect.get(target, field, receiver)
        : fails(field),
    ownKeys: () => fails("all"),
  });
}
