import assert from "node:assert/strict";
import fc from "fast-check";
import { roundMs } from "../../../src/speculate/costs/lookup.ts";
import { pricesOf } from "../../../src/speculate/costs/prices.ts";
import { costsOf } from "../policies/goodput/costs.ts";

Deno.test("prices: the parts of a round add up to what roundMs says, in any order of asking", () => {
  const costs = costsOf({ row: 0.3, host: 0.2 });
  const prices = pricesOf(costs);
  const round = fc.record({
    batch: fc.integer({ min: 1, max: 200 }),
    steps: fc.integer({ min: 0, max: 7 }),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(fc.property(round, ({ batch, steps, part }) => {
    const drafts = Math.floor(batch * steps * part);
    const rows = drafts === batch * steps ? prices.padded(batch) * (steps + 1) : batch + drafts;
    const verify = prices.verify(rows)[rows] as number;
    const parts = prices.drafting(batch, steps) + verify + costs.host;
    const whole = roundMs(costs, { batch, steps, drafts, cells: 0 });
    assert(Math.abs(parts - whole) < 1e-9 * whole, `${parts} ${whole}`);
  }));
});
