import assert from "node:assert/strict";
import { geometric, spreadOut } from "../../src/simulate/acceptance/model.ts";
import {
  armsOf,
  compare,
  DEPTH_ORACLE,
  policyArm,
  type World,
} from "../../src/simulate/compare/compare.ts";
import { best, choiceOf, perBatchOracle } from "../../src/simulate/compare/oracle.ts";
import { fixedBatch, SCENARIOS, staged } from "../../src/simulate/compare/scenario.ts";
import { SCENARIO_NAMES } from "../../src/simulate/compare/scenario_names.ts";
import { tablePricing } from "../../src/simulate/costs/pricing.ts";
import { batchSource } from "../../src/simulate/run/source.ts";
import { COST_PRESETS } from "../../tools/cost_presets.ts";
import { COSTS, MACHINE } from "./worlds.ts";

const TOY = tablePricing(COST_PRESETS["toy"] ?? COSTS);

Deno.test("the best round of few sequences is found by trying all", () => {
  const survival = [[0.9, 0.5, 0.4], [0.3, 0.2, 0.1]];
  const price = (steps: number, drafts: number) => 10 + steps + 0.9 * drafts;
  const found = best(survival, { depths: [0, 1, 2, 3], price, ranks: true });
  let most = 0;
  for (let steps = 0; steps <= 3; steps++) {
    for (let a = 0; a <= steps; a++) {
      for (let b = 0; b <= steps; b++) {
        const sum = (chances: readonly number[] | undefined, count: number) =>
          (chances ?? []).slice(0, count).reduce((all, each) => all + each, 0);
        const tokens = 2 + sum(survival[0], a) + sum(survival[1], b);
        most = Math.max(most, tokens / price(steps, a + b));
      }
    }
  }
  assert.ok(Math.abs(found.tokens / found.ms - most) < 1e-12);
  assert.deepEqual(choiceOf(survival, { steps: 2, drafts: 3 }).depths, [2, 1]);
  assert.equal(choiceOf(survival, { steps: 2, drafts: 4 }).depths, undefined);
  const whole = best(survival, { depths: [0, 1, 2, 3], price, ranks: false });
  assert.equal(whole.drafts, 2 * whole.steps);
});

Deno.test("the per-batch oracle has each size's best depth, and the nearest for others", () => {
  const share = (batch: number, depth: number, tokens: number) => (
    { batch, depth, rounds: 1, tokens, ms: 10 }
  );
  const { open } = perBatchOracle(TOY, [
    { depths: [share(1, 0, 10), share(64, 0, 700)] },
    { depths: [share(1, 3, 25), share(64, 3, 500)] },
  ]);
  const policy = open({ now: { ms: 0, tokens: 0 }, request: () => assert.fail() });
  const depthAt = (batchSize: number) => {
    const of = { asked: [], sequences: [], roundsPerSync: 1, costs: undefined, ranks: false };
    const context = { batchSize, ...of };
    return policy.pick(policy.start, context).tier.depth;
  };
  assert.deepEqual([1, 3, 40, 64, 128].map(depthAt), [3, 3, 0, 0, 0]);
});

/** A constant batch, with requests and tokens of different difficulty. */
function worldOf(batch: number, alpha: number, seed: number): World {
  return {
    pricing: TOY,
    acceptance: spreadOut(geometric(alpha), { requests: 0.6, tokens: 1 }),
    source: () => batchSource(() => batch, { seed, promptTokens: 10, outputTokens: 200 }),
    machine: { ...MACHINE, maxBatch: batch },
    until: { tokens: 4000 * Math.min(batch, 16) },
    seed,
  };
}

Deno.test("no depth and no policy is above the oracle", () => {
  for (const [batch, alpha] of [[1, 0.8], [8, 0.5], [32, 0.8], [64, 0.2]] as const) {
    const world = worldOf(batch, alpha, 11);
    const ema = { "1": { candidate_steps: [0, 1, 3, 5] } };
    const found = [...compare(world, armsOf([policyArm("ema", ema), DEPTH_ORACLE], TOY))];
    const rate = (name: string, kind: string) =>
      found.find(({ arm }) => arm.name === name && arm.kind === kind)?.result.throughput ?? NaN;
    const oracle = rate("oracle", "oracle");
    for (const { arm, result } of found) {
      // Half a per cent is allowed for chance, because the oracle is best only in expectation.
      assert.ok(result.throughput <= oracle * 1.005, `batch ${batch}: ${arm.name} is above it`);
    }
    assert.ok(rate("oracle:depth", "policy") <= oracle * 1.005);
    const statics = found.filter(({ arm }) => arm.kind === "static");
    assert.equal(statics.length, 8);
    assert.equal(
      rate("oracle:batch", "oracle"),
      Math.max(...statics.map(({ result }) => result.throughput)),
    );
  }
});

Deno.test("one world twice is the same, to the last bit, for every arm", () => {
  const run = () => {
    const arms = armsOf([policyArm("ema", { candidate_steps: [1, 3] })], TOY);
    return [...compare({ ...worldOf(4, 0.7, 5), until: { rounds: 300 } }, arms)]
      .map(({ result }) => result);
  };
  assert.deepEqual(run(), run());
});

Deno.test("scenarios: a batch over time, and phases as long for fast policies as for slow ones", () => {
  assert.deepEqual(SCENARIOS.map(({ name }) => name), [...SCENARIO_NAMES]);
  for (const scenario of SCENARIOS) {
    const { source, until, maxBatch } = staged(scenario, TOY, { rounds: 300, seed: 4 });
    assert.ok(scenario.fixed === "time" ? until.ms : until.tokens);
    const { due } = source();
    const [first] = [due(0, 0).length];
    assert.ok(first >= 1 && first <= maxBatch, scenario.name);
  }
  const walk = SCENARIOS.find(({ name }) => name === "walk");
  const sizes = Array.from({ length: 20_000 }, (_, round) => walk?.batch(9)(round) ?? 0);
  assert.deepEqual([Math.min(...sizes) >= 1, Math.max(...sizes) <= 128], [true, true]);
  assert.ok(Math.min(...sizes) < 20 && Math.max(...sizes) > 110);
  const bursty = SCENARIOS.find(({ name }) => name === "bursty")?.batch(0);
  assert.deepEqual([0, 99, 100, 200].map((round) => bursty?.(round)), [2, 2, 96, 2]);
});

Deno.test("hybrid does not go on with drafts that are a little worse than none", () => {
  const pricing = tablePricing(COST_PRESETS["a100-13b"] ?? COSTS);
  const scenario = fixedBatch(64, geometric(0.05));
  const { source, acceptance, maxBatch, until } = staged(scenario, pricing, {
    rounds: 2500,
    seed: 0,
  });
  const machine = { ...MACHINE, maxBatch, noise: 0.05, confidenceNoise: 0.5 };
  const world = { pricing, source, acceptance, machine, until, seed: 0 };
  const arms = [policyArm("hybrid", {}), policyArm("static", { num_steps: 0 })];
  const [hybrid = NaN, plain = NaN] = [...compare(world, arms)]
    .map(({ result }) => result.throughput);
  assert.ok(hybrid / plain > 0.995, `${hybrid / plain}`);
});

Deno.test("a policy that has depths without a price, or options that it does not take, is refused", () => {
  const world = { ...worldOf(1, 0.5, 1), pricing: { ...TOY, steps: [1, 2] } };
  const run = (name: string, options: unknown) => [...compare(world, [policyArm(name, options)])];
  assert.throws(
    () => run("static", { num_steps: 3 }),
    /Cannot use policy "static": it drafts 3 steps, and the cost table has only 1, 2/,
  );
  assert.throws(() => run("static", { depth: 3 }), /unknown option "depth"/);
});
