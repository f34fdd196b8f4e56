import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { catchUpMs, prefillMs, roundMs } from "../../../src/speculate/costs/lookup.ts";
import { parseCosts } from "../../../src/speculate/costs/parse.ts";
import {
  refineCatchUp,
  refinedTo,
  refinePrefill,
  refineRound,
} from "../../../src/speculate/costs/refine.ts";
import type { CostTable } from "../../../src/speculate/costs/table.ts";
import { SIMPLE } from "./table.ts";

const ROUND = { batch: 3, steps: 3, cells: 60 };
const OTHER = { batch: 1, steps: 5, cells: 20 };

function times(count: number, costs: CostTable, one: (costs: CostTable, i: number) => CostTable) {
  let found = costs;
  for (let i = 0; i < count; i++) found = one(found, i);
  return found;
}

Deno.test("a round that takes as long as predicted changes no price", () => {
  const found = refineRound(SIMPLE, ROUND, roundMs(SIMPLE, ROUND));
  assert.equal(roundMs(found, ROUND), roundMs(SIMPLE, ROUND));
  assert.equal(roundMs(found, OTHER), roundMs(SIMPLE, OTHER));
});

Deno.test("predictions come to what rounds take, also of two kinds that differ", () => {
  const own = 1.8 * roundMs(SIMPLE, ROUND);
  const other = 0.6 * roundMs(SIMPLE, OTHER);
  const found = times(
    60,
    SIMPLE,
    (costs) => refineRound(refineRound(costs, ROUND, own), OTHER, other),
  );
  assert.ok(Math.abs(roundMs(found, ROUND) / own - 1) < 0.02, `${roundMs(found, ROUND)}`);
  assert.ok(Math.abs(roundMs(found, OTHER) / other - 1) < 0.02, `${roundMs(found, OTHER)}`);
  assert.deepEqual(found.refined?.rounds.map(({ batch, steps }) => [batch, steps]), [
    [4, 3],
    [1, 5],
  ]);
});

Deno.test("prompts have a factor of their own, which rounds leave as it is and files keep", () => {
  const [chunk, ms] = [{ from: 64, to: 128 }, 3 * prefillMs(SIMPLE, 128, 64)];
  const found = times(60, SIMPLE, (costs) => refinePrefill(costs, [chunk], ms));
  assert.ok(Math.abs(prefillMs(found, 128, 64) / ms - 1) < 0.02);
  assert.equal(roundMs(found, ROUND), roundMs(SIMPLE, ROUND));
  const later = refineRound(found, ROUND, 2 * roundMs(SIMPLE, ROUND));
  assert.equal(prefillMs(later, 128, 64), prefillMs(found, 128, 64));
  assert.deepEqual(parseCosts(JSON.parse(JSON.stringify(later))), later);
  assert.equal(refinePrefill(SIMPLE, [chunk], NaN), SIMPLE);
});

Deno.test("factors of a run: rounds and prompts take its mean times, kinds that it had none of its pace", () => {
  const [own, other] = [1.5 * roundMs(SIMPLE, ROUND), 3 * roundMs(SIMPLE, OTHER)];
  const chunk = { from: 0, to: 64 };
  const found = refinedTo({ ...SIMPLE, refined: { all: 7, rounds: [], catchUp: 2 } }, {
    rounds: [
      ...[0.8, 1.2].map((part) => ({ round: ROUND, ms: part * own })),
      { round: OTHER, ms: other },
    ],
    prefills: [{ chunks: [chunk], ms: 2 * prefillMs(SIMPLE, 64) }],
  });
  const near = (ms: number, expected: number) =>
    assert.ok(Math.abs(ms / expected - 1) < 1e-9, `${ms}, not ${expected}`);
  near(roundMs(found, ROUND), own);
  near(roundMs(found, OTHER), other);
  const all = (2 * own + other) / (2 * roundMs(SIMPLE, ROUND) + roundMs(SIMPLE, OTHER));
  const unseen = { batch: 8, steps: 0, cells: 0 };
  near(roundMs(found, unseen), all * roundMs(SIMPLE, unseen));
  near(prefillMs(found, 64), 2 * prefillMs(SIMPLE, 64));
  near(catchUpMs(found, 8), 2 * catchUpMs(SIMPLE, 8));
  const nothing = refinedTo(SIMPLE, { rounds: [], prefills: [] });
  near(roundMs(nothing, ROUND), roundMs(SIMPLE, ROUND));
});

Deno.test("a slower machine also raises the price of rounds that are not run", () => {
  const found = times(60, SIMPLE, (costs) => refineRound(costs, ROUND, 2 * roundMs(SIMPLE, ROUND)));
  const part = roundMs(found, OTHER) / roundMs(SIMPLE, OTHER);
  assert.ok(part > 1.15 && part < 2, `${part}`);
});

Deno.test("one outlier moves a price by a ninth at most; absurd times by nothing", () => {
  for (const ms of [1e9, 1e-9]) {
    const part = roundMs(refineRound(SIMPLE, ROUND, ms), ROUND) / roundMs(SIMPLE, ROUND);
    assert.ok(part > 0.89 && part < 1.12 && part !== 1, `${part}`);
  }
  for (const ms of [NaN, Infinity, -1, 0]) {
    assert.equal(refineRound(SIMPLE, ROUND, ms), SIMPLE);
    assert.equal(refineCatchUp(SIMPLE, 9, ms), SIMPLE);
  }
  assert.equal(
    refineRound({ ...SIMPLE, verify: [], host: 0 }, { ...ROUND, steps: 0, cells: 0 }, 5).refined,
    undefined,
  );
});

Deno.test("catching up has a factor of its own", () => {
  const ms = 3 * catchUpMs(SIMPLE, 20);
  const found = times(80, SIMPLE, (costs) => refineCatchUp(costs, 20, ms));
  assert.ok(Math.abs(catchUpMs(found, 20) / ms - 1) < 0.02);
  assert.equal(roundMs(found, ROUND), roundMs(SIMPLE, ROUND));
});

Deno.test("after any times prices are finite, the table is as it was, and can be read again", () => {
  const ms = fc.oneof(
    fc.double({ min: 0, max: 1e6 }),
    fc.constantFrom(NaN, Infinity, -1, 1e308, 5e-324),
  );
  const round = fc.record({
    batch: fc.integer({ min: 1, max: 16 }),
    steps: fc.integer({ min: 0, max: 7 }),
    cells: fc.integer({ min: 0, max: 9999 }),
  });
  const frozen = JSON.stringify(SIMPLE);
  fc.assert(
    fc.property(fc.array(fc.record({ ms, round }), { maxLength: 60 }), (all) => {
      let costs = SIMPLE;
      for (const each of all) {
        costs = refineCatchUp(refineRound(costs, each.round, each.ms), 5, each.ms);
        const found = roundMs(costs, each.round);
        assert.ok(found > 0 && found < 1e9, `${found}`);
      }
      assert.equal(JSON.stringify(SIMPLE), frozen);
      assert.deepEqual(parseCosts(JSON.parse(JSON.stringify(costs))), costs);
    }),
    { seed: 14, numRuns: 200 },
  );
});
