import assert from "node:assert/strict";
import { geometric } from "../../src/simulate/acceptance/model.ts";
import { phasesOfTime } from "../../src/simulate/acceptance/phases.ts";
import { pricesOf } from "../../src/simulate/costs/machine_prices.ts";
import { tablePricing } from "../../src/simulate/costs/pricing.ts";
import { REWARD_FORMAT, rewardPricing } from "../../src/simulate/costs/rewards.ts";
import { simulate } from "../../src/simulate/run/simulation.ts";
import { batchSource } from "../../src/simulate/run/source.ts";
import { roundMs, totalMs } from "../../src/speculate/costs/lookup.ts";
import { COST_PRESETS } from "../../tools/cost_presets.ts";
import { COST_PRESETS as FILES } from "../../src/cli/simulate/cost_presets.ts";
import { COSTS, MACHINE, simulationOf, statically } from "./worlds.ts";

const OF = { tokens: 0, seed: 1 };

Deno.test("a round's parts add up to what the policies' lookup says", () => {
  const table = { ...COSTS, host: 6, perCell: 0.01 };
  const pricing = tablePricing(table);
  for (const batch of [1, 3, 8]) {
    for (const steps of [0, 1, 4]) {
      for (const drafts of [undefined, 0, batch * steps >> 1]) {
        const round = { batch, steps, cells: 100, roundsPerSync: 2 };
        const price = pricing.round({ ...round, drafts });
        const expected = roundMs(table, drafts === undefined ? round : { ...round, drafts });
        assert.ok(Math.abs(totalMs(price) - expected) < 1e-9);
        assert.equal(price.host, 3);
        assert.equal(price.draft, steps > 0 ? (steps - 1) * 2 : 0);
      }
    }
  }
  assert.deepEqual([pricing.catchUp(8), pricing.prefill([{ from: 0, to: 100 }])], [2, 50]);
  // Several prompts cost as much as one prompt of as many tokens.
  const prompts = [{ from: 0, to: 40 }, { from: 0, to: 60 }];
  assert.equal(pricing.prefill(prompts), pricing.prefill([{ from: 0, to: 100 }]));
});

const REWARDS = {
  format: REWARD_FORMAT,
  source: "test",
  batches: [1, 4],
  steps: [1, 3],
  rates: [[100, 300], [150, 240]],
} as const;

Deno.test("rates: simulated throughput is the published one, between sizes along log b", () => {
  const acceptance = geometric(0.6);
  const pricing = rewardPricing(REWARDS, acceptance, OF);
  const rate = (batch: number, steps: number) =>
    simulate(simulationOf([], {
      pricing,
      acceptance,
      policy: statically(steps),
      source: batchSource(() => batch, { seed: 2, promptTokens: 1, outputTokens: 1e9 }),
      machine: { ...MACHINE, maxBatch: batch },
      until: { rounds: 20_000 },
    })).throughput;
  const expected = [[1, 1, 100], [4, 3, 240], [2, 1, 200], [8, 1, 300]] as const;
  for (const [batch, steps, published] of expected) {
    assert.ok(Math.abs(rate(batch, steps) / published - 1) < 0.015, `${batch} ${steps}`);
  }
  assert.throws(() => rate(1, 2), /Cannot simulate 2 steps with "test": it has 1, 3/);
});

Deno.test("rates: acceptance that changes with the time has the published ones on average over its phases", () => {
  const acceptance = phasesOfTime([0.35, 0.85], 500);
  const pricing = rewardPricing(REWARDS, acceptance, OF);
  for (const [steps, published] of [[1, 300], [3, 240]] as const) {
    const { throughput } = simulate(simulationOf([], {
      pricing,
      acceptance,
      policy: statically(steps),
      source: batchSource(() => 4, { seed: 2, promptTokens: 1, outputTokens: 1e9 }),
      machine: { ...MACHINE, maxBatch: 4 },
      until: { ms: 100_000 },
    }));
    assert.ok(Math.abs(throughput / published - 1) < 0.015, `${steps}: ${throughput}`);
  }
});

Deno.test("the published machines are what tools/cost_presets.ts makes", () => {
  for (const [name, table] of Object.entries(COST_PRESETS)) {
    assert.deepEqual(Object.entries(FILES).find(([each]) => each === name)?.[1], table);
  }
  for (const [name, json] of Object.entries(FILES)) {
    const pricing = pricesOf(json)(geometric(0.7), OF);
    const [steps = 0] = pricing.steps ?? [];
    const round = { steps, drafts: undefined, cells: 0, roundsPerSync: 1 };
    const [one, many] = [1, 64].map((batch) => totalMs(pricing.round({ ...round, batch })));
    assert.ok(one !== undefined && many !== undefined && one > 0 && many > one, name);
  }
});

Deno.test("the toy machine is the first study's", () => {
  const toy = tablePricing(COST_PRESETS["toy"] ?? COSTS);
  const verify = (rows: number) => 0.05 + (1 + (rows / 64) ** 4) ** 0.25;
  for (const [batch, steps] of [[1, 0], [16, 0], [64, 3], [128, 1]] as const) {
    const expected = verify(batch * (steps + 1)) + steps * 0.05 * (1 + batch / 128);
    const found = totalMs(
      toy.round({ batch, steps, drafts: undefined, cells: 0, roundsPerSync: 1 }),
    );
    assert.ok(Math.abs(found / expected - 1) < 0.03, `${batch} ${steps}: ${found} ${expected}`);
  }
});

Deno.test("a table of rates that is broken is refused by what is wrong", () => {
  const broken: readonly [object, RegExp][] = [
    [{ batches: [4, 1] }, /batches have to be integers from 1 in rising order/],
    [{ steps: [] }, /steps have to be integers/],
    [{ rates: [[100, 300], [150]] }, /rates have to be numbers above 0/],
    [{ rates: [[100, 300], [150, 0]] }, /rates have to be numbers above 0/],
    [{ source: 3 }, /source is not text/],
    [{ unit: "tok/s" }, /unknown field "unit"/],
  ];
  for (const [change, message] of broken) {
    assert.throws(() => pricesOf({ ...REWARDS, ...change }), message);
  }
  assert.throws(() => pricesOf({ format: "other" }), /its format is not/);
});
