import assert from "node:assert/strict";
import { policyRandom } from "../../../src/speculate/noise.ts";
import { POLICIES, policyNamed } from "../../../src/speculate/policies/registry.ts";
import type { PolicySetup } from "../../../src/speculate/policy.ts";
import { adaptationContract } from "../adaptation_contract.ts";
import { policyContract } from "../policy_contract.ts";
import { contextOf, outcomeOf } from "../rounds.ts";

const NAMES = Object.keys(POLICIES).join(", ");
const SETUP: PolicySetup = { buckets: [1, 2, 4, 8], random: policyRandom(0) };

/** Some policies have two names. */
const KINDS = Map.groupBy(Object.keys(POLICIES), (name) => POLICIES[name]);

for (const [kind, names] of KINDS) {
  assert(kind !== undefined);
  const name = names.join(" and ");
  const { examples, open } = kind;
  adaptationContract(name, kind);
  for (const [n, options] of examples.entries()) {
    policyContract(
      `${name}, example ${n + 1}`,
      (seed) => open(options, { ...SETUP, random: policyRandom(seed) }),
    );
  }
}

Deno.test("registry: the table on docs/policies.md has every policy, and no other", async () => {
  const page = await Deno.readTextFile(new URL("../../../docs/policies.md", import.meta.url));
  const names = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`(.*?)`/g)].map(([, name]) => name)
  );
  assert.deepEqual(names.toSorted(), [...Object.keys(POLICIES), "oracle"].toSorted());
});

Deno.test("registry: which policies may choose before the last rounds are learned", () => {
  const lags = Object.keys(POLICIES).filter((name) => {
    const { mayLag, start } = policyNamed(name, {}, SETUP);
    return mayLag?.(start, contextOf(1)) === true;
  });
  const expected = ["adaptive-verify", "auto", "dsd", "ema-censored", "hybrid", "p-min", "tetris"];
  assert.deepEqual(lags.toSorted(), expected);
  const probing = policyNamed("dsd", { probe: 50 }, SETUP);
  assert.equal(probing.mayLag?.(probing.start, contextOf(1)), false);
});

Deno.test("registry: policies that read the cost table say so, and no others do", () => {
  for (const name of Object.keys(POLICIES)) {
    const policy = policyNamed(name, {}, SETUP);
    let reads = false;
    const context = Object.defineProperty(contextOf(4), "costs", {
      get: () => void (reads = true),
    });
    let state = policy.start;
    for (let round = 0; round < 100; round++) {
      const { tier: { depth: numSteps } } = policy.pick(state, context);
      const outcome = outcomeOf({ batchSize: 4, numSteps, accepted: [0, 0, 0, 0] });
      state = policy.learn(state, outcome).state;
    }
    assert.equal(policy.costs === true, reads, name);
  }
});

Deno.test("registry: every policy has an example", () => {
  for (const { examples } of Object.values(POLICIES)) assert(examples.length > 0);
});

Deno.test("registry: a policy by name, with its options and the steps to begin with", () => {
  const steps = (name: string, options: unknown, numSteps?: number) => {
    const policy = policyNamed(
      name,
      options,
      numSteps === undefined ? SETUP : { ...SETUP, numSteps },
    );
    return policy.pick(policy.start, contextOf(1)).tier.depth;
  };
  assert.equal(steps("static", {}), 3);
  assert.equal(steps("static", {}, 2), 2);
  assert.equal(steps("static", { num_steps: 5 }, 2), 5);
  const config = { "1": { candidate_steps: [1, 3, 7] } };
  assert.equal(steps("ema", config), 3);
  assert.equal(steps("ema", config, 7), 7);
});

Deno.test("registry: what cannot be used is told in one line", () => {
  const faults: [string, unknown, string][] = [
    ["best", {}, `Cannot use policy "best": there are ${NAMES}`],
    ["toString", {}, `Cannot use policy "toString": there are ${NAMES}`],
    ["static", [], 'Cannot use policy "static": its options must be an object'],
    ["static", null, 'Cannot use policy "static": its options must be an object'],
    [
      "static",
      { steps: 3 },
      'Cannot use policy "static": unknown option "steps", known: num_steps',
    ],
    ...[-1, 1.5, "3", null].map((num_steps): [string, unknown, string] => [
      "static",
      { num_steps },
      `Cannot use policy "static": num_steps must be an integer of at least 0, got ${num_steps}`,
    ]),
    [
      "ema",
      { "1": { candidate_steps: [] } },
      'Cannot use policy "ema": batch size 1: candidate_steps must be a list of non-negative integers, got []',
    ],
  ];
  for (const [name, options, message] of faults) {
    assert.throws(() => policyNamed(name, options, SETUP), { name: "PolicyError", message });
  }
});

Deno.test("policies draw by seed, round and purpose", () => {
  const draws = [[1, 0, 0], [2, 0, 0], [1, 1, 0], [1, 0, 1]].map(([seed = 0, round = 0, of = 0]) =>
    policyRandom(seed)(round, of)
  );
  assert.equal(new Set(draws).size, 4);
  assert.deepEqual(draws[0], policyRandom(1)(0, 0));
});
