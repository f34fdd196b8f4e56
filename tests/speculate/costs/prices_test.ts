import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { roundMs } from "../../../src/speculate/costs/lookup.ts";
import { refineRound } from "../../../src/speculate/costs/refine.ts";
import { bestBudget } from "../../../src/speculate/estimate/budget.ts";
import { pricing } from "../../../src/speculate/policies/goodput/pricing.ts";
import { contextOf } from "../rounds.ts";
import { type PackedOf, packedRows } from "../../../src/speculate/costs/cost_buckets.ts";
import { type Prices, pricesOf, samePrices } from "../../../src/speculate/costs/prices.ts";
import { costsOf } from "../policies/goodput/costs.ts";

function ofRound(prices: Prices, batch: number, depth: number): PackedOf {
  return { batch: prices.padded(batch), depth };
}

Deno.test("prices: the parts of a round add up to what roundMs says, in any order of asking", () => {
  const costs = { ...costsOf({ row: 0.3, host: 0.2 }), packing: 0.7 };
  const prices = pricesOf(costs);
  const round = fc.record({
    batch: fc.integer({ min: 1, max: 200 }),
    steps: fc.integer({ min: 0, max: 7 }),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(fc.property(round, ({ batch, steps, part }) => {
    const drafts = Math.floor(batch * steps * part);
    const rows = drafts === batch * steps ? prices.padded(batch) * (steps + 1) : batch + drafts;
    if (drafts < batch * steps && packedRows(rows, ofRound(prices, batch, steps)) !== rows) return;
    const forwards = drafts === batch * steps
      ? prices.whole(batch, steps)
      : prices.packed(rows)[rows] as number;
    const parts = prices.drafting(batch, steps) + forwards + costs.host;
    const whole = roundMs(costs, { batch, steps, drafts, cells: 0 });
    assert(Math.abs(parts - whole) < 1e-9 * whole, `${parts} ${whole}`);
  }));
});

Deno.test("prices: policies price rounds as roundMs does, of tables that running refined too", () => {
  const table = {
    ...costsOf({ row: 0.3, host: 0.2 }),
    perCell: 0.01,
    perRowCell: 0.002,
    packing: 0.4,
  };
  const costs = refineRound(refineRound(table, { batch: 5, steps: 3, cells: 0 }, 40), {
    batch: 5,
    steps: 0,
    cells: 0,
  }, 1);
  assert(samePrices(table, costs));
  const priced = pricing({ buckets: costs.buckets })(contextOf(5, { costs }), []);
  for (const steps of [0, 1, 3]) {
    const budget = priced.budget(steps);
    const factor = priced.factor(steps);
    const whole = roundMs(costs, { batch: 5, steps, cells: 100 });
    assert(Math.abs(budget.whole * factor - whole) < 1e-9 * whole, `${steps}`);
    // Each further draft adds half an accepted token, so that some drafts are verified and some are not.
    const found = bestBudget(Float64Array.from({ length: 5 * steps + 1 }, (_, n) => n / 2), {
      ...budget,
      whole: Infinity,
    });
    const drafts = found.drafts;
    if (packedRows(5 + drafts, ofRound(pricesOf(costs), 5, steps)) === 5 + drafts) {
      const ms = roundMs(costs, { batch: 5, steps, drafts, cells: 100 });
      assert(Math.abs(found.ms * factor - ms) < 1e-9 * ms, `${steps}, ${drafts}`);
    }
  }
});
