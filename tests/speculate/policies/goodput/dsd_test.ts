import assert from "node:assert/strict";
import { policyRandom } from "../../../../src/speculate/noise.ts";
import { policyNamed } from "../../../../src/speculate/policies/registry.ts";
import type { Policy } from "../../../../src/speculate/policy.ts";
import { contextOf, outcomeOf } from "../../rounds.ts";
import { drafting, partOfBest, steady } from "./behaviour.ts";
import { BUCKETS, costsOf } from "./costs.ts";

function dsd(options: unknown = {}): Policy {
  return policyNamed("dsd", options, { buckets: BUCKETS, random: policyRandom(1) });
}

Deno.test("dsd policy: the depth of most tokens a millisecond", () => {
  // ms = 1 + 0.01 rows + 0.1 K at batch 1; n = (1 - 0.7^(K + 1)) / 0.3 before anything is known.
  const costs = costsOf({ row: 0.01 });
  const tokens = (depth: number) => (1 - 0.7 ** (depth + 1)) / 0.3;
  const ms = (depth: number) => 1 + 0.11 * depth;
  const rates = [0, 1, 2, 3, 5, 7].map((depth) => tokens(depth) / ms(depth));
  const best = [0, 1, 2, 3, 5, 7][rates.indexOf(Math.max(...rates))];
  const policy = dsd();
  assert.equal(policy.pick(policy.start, contextOf(1, { costs })).tier.depth, best);
});

Deno.test("dsd policy: drafts have to promise a tenth more than none", () => {
  // Without drafts 1 token in 1 ms; with one of 0.7, 1.7 in 1 + 0.2 + 0.4 ms: 6 % more.
  const costs = costsOf({ row: 0.4, level: 0.2 });
  const first = (margin: number) => {
    const policy = dsd({ margin, steps: [0, 1] });
    return policy.pick(policy.start, contextOf(1, { costs })).tier.depth;
  };
  assert.equal(first(1), 1);
  assert.equal(first(1.1), 0);
});

Deno.test("dsd policy: alpha counts what was tested, censored chains with it", () => {
  const policy = dsd();
  const alpha = (accepted: readonly number[]) => {
    let state = policy.start;
    for (let round = 0; round < 100; round++) {
      state = policy.learn(state, outcomeOf({ batchSize: 2, numSteps: 3, accepted })).state;
    }
    return Number(policy.report(state).json.alpha);
  };
  assert(alpha([3, 3]) > 0.98);
  assert(Math.abs(alpha([1, 1]) - 0.5) < 0.01);
  assert(Math.abs(alpha([3, 0]) - 3 / 4) < 0.01);
});

/** A world in which drafts are first bad and then good, with a constant batch size. */
const BETTER = steady({
  costs: costsOf({ row: 0.1 }),
  told: costsOf({ row: 0.1 }),
  batch: () => 8,
  lasts: 3000,
  alpha: (ms) => ms < 500 ? 0.1 : 0.95,
});

Deno.test("dsd policy: as published it never leaves 0 steps (decision deadlock)", () => {
  assert.equal(drafting(BETTER, dsd(), 600), 0);
});

Deno.test("dsd policy: a probe cures that", () => {
  const part = drafting(BETTER, dsd({ probe: 50 }), 2000);
  assert(part > 0.9, `${part}`);
});

Deno.test("dsd policy: another batch size ends the deadlock too", () => {
  const batch = (ms: number) => ms < 1500 ? 64 : 1;
  const world = { ...BETTER, batch, alpha: () => 0.8 };
  assert(drafting(world, dsd(), 2000) > 0.9);
});

Deno.test("dsd policy: near the best depth where nothing changes", () => {
  for (const batch of [1, 8]) {
    const part = partOfBest(steady({ batch: () => batch }), () => dsd());
    assert(part > 0.97, `batch ${batch}: ${part}`);
  }
});
