import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  at,
  catchUpMs,
  paddedBatch,
  prefillMs,
  promptsMs,
  roundMs,
} from "../../../src/speculate/costs/lookup.ts";
import { isotonic } from "../../../src/speculate/costs/fit.ts";
import type { CostTable } from "../../../src/speculate/costs/table.ts";
import { SIMPLE } from "./table.ts";

const near = (found: number, expected: number) =>
  assert.ok(Math.abs(found - expected) < 1e-9, `${found}, not ${expected}`);

Deno.test("at: on points, between them, before the first and beyond the last", () => {
  const { verify } = SIMPLE;
  for (
    const [count, ms] of [[1, 10], [8, 12], [64, 68], [4.5, 11], [36, 40], [0, 10], [-3, 10], [
      128,
      132,
    ]] as const
  ) near(at(verify, count), ms);
  assert.equal(at([], 7), 0);
  assert.equal(at([{ at: 4, ms: 3 }], 400), 3);
  assert.equal(at([{ at: 4, ms: 3 }], 1), 3);
  assert.equal(at(verify, NaN), 10);
  assert.equal(at([{ at: 1, ms: 3 }, { at: 2, ms: 3 }], Infinity), 3);
});

Deno.test("roundMs: the parts of a round add up, the batch padded", () => {
  // 2 levels at batch 4, a verify and an extend of 16 rows, attention over 100 cells, and the host.
  const level = 1 + 0.1 * 3;
  const round = 2 * level + (12 + 8 * 1) + 100 * 0.001 + (2 + 0.1 * 15);
  near(roundMs(SIMPLE, { batch: 3, steps: 3, cells: 100 }), round + 0.4);
  near(roundMs(SIMPLE, { batch: 3, steps: 3, cells: 100, roundsPerSync: 4 }), round + 0.1);
  near(roundMs(SIMPLE, { batch: 3, steps: 3, cells: 100, roundsPerSync: 0 }), round + 0.4);
  // Without drafts: the verify forward of the padded batch.
  near(roundMs(SIMPLE, { batch: 8, steps: 0, cells: 0 }), 12.4);
  // 4 of 9 drafts are verified: 3 + 4 rows, which run in the programs for 8 rows.
  const fewer = round - (20 + 2 + 0.1 * 15) + (12 + 2 + 0.1 * 7);
  near(roundMs(SIMPLE, { batch: 3, steps: 3, cells: 100, drafts: 4 }), fewer + 0.4);
  // 3 + 8 rows: programs of 12 and a batch of 3 or 4, or 16 rows that hold all drafts.
  near(
    roundMs(SIMPLE, { batch: 3, steps: 2, cells: 0, drafts: 6 }),
    2.4 - 0.7 + (12 + 4 + 2 + 1.1),
  );
  near(roundMs(SIMPLE, { batch: 3, steps: 3, cells: 100, drafts: 99 }), round + 0.4);
});

Deno.test("roundMs: attention's arithmetic, by the rows of a sequence", () => {
  const costs: CostTable = { ...SIMPLE, perRowCell: 0.01 };
  const more = (round: Parameters<typeof roundMs>[1]) =>
    roundMs(costs, round) - roundMs(SIMPLE, round);
  near(more({ batch: 4, steps: 3, cells: 100 }), 100 * 4 * 0.01);
  near(more({ batch: 4, steps: 0, cells: 100 }), 100 * 0.01);
  near(more({ batch: 4, steps: 3, cells: 100, drafts: 4 }), 100 * 2 * 0.01);
});

Deno.test("roundMs: packing, once a round that verifies a part of its drafts", () => {
  const more = (round: Parameters<typeof roundMs>[1]) =>
    roundMs({ ...SIMPLE, packing: 0.5 }, round) - roundMs(SIMPLE, round);
  near(more({ batch: 4, steps: 3, cells: 0 }), 0);
  near(more({ batch: 4, steps: 3, drafts: 12, cells: 0 }), 0);
  near(more({ batch: 4, steps: 3, drafts: 4, cells: 0 }), 0.5);
  near(more({ batch: 4, steps: 3, drafts: 4, cells: 0, roundsPerSync: 4 }), 0.5);
});

Deno.test("what running has shown multiplies rounds of that kind, and all rounds", () => {
  const refined = { all: 1.5, rounds: [{ batch: 4, steps: 3, ratio: 2 }], catchUp: 3 };
  const costs: CostTable = { ...SIMPLE, refined };
  const of = (batch: number, steps: number) => {
    const round = { batch, steps, cells: 50 };
    return roundMs(costs, round) / roundMs(SIMPLE, round);
  };
  near(of(4, 3), 3);
  near(of(3, 3), 3);
  near(of(4, 2), 1.5);
  near(of(8, 3), 1.5);
  near(catchUpMs(costs, 11), 12);
});

Deno.test("prefills: nothing of nothing", () => {
  assert.deepEqual([catchUpMs(SIMPLE, 0), prefillMs(SIMPLE, 0), catchUpMs(SIMPLE, NaN)], [0, 0, 0]);
  near(catchUpMs(SIMPLE, 51), 8);
  near(prefillMs(SIMPLE, 199), 203);
  // A chunk costs its part of the whole, but never less than it would at the beginning.
  const curved: CostTable = {
    ...SIMPLE,
    prefill: [{ at: 0, ms: 1 }, { at: 64, ms: 8 }, { at: 128, ms: 20 }],
  };
  near(prefillMs(curved, 128, 64), 12);
  near(prefillMs(curved, 64, 32), 4.5);
  assert.equal(prefillMs(curved, 64, 64), 0);
  // Chunks of several prompts share a forward of all their rows; each adds what it costs to attend to more.
  near(promptsMs(curved, [{ from: 0, to: 32 }, { from: 0, to: 32 }]), 8);
  near(
    promptsMs(curved, [{ from: 64, to: 128 }, { from: 0, to: 64 }, { from: 9, to: 9 }]),
    20 + 12 - 8,
  );
  const empty: CostTable = { ...SIMPLE, level: [], verify: [], extend: [], catchUp: [] };
  near(roundMs(empty, { batch: 2, steps: 3, cells: 0 }), 0.4);
  assert.equal(catchUpMs(empty, 9), 0);
  assert.deepEqual([1, 3, 8, 9].map((batch) => paddedBatch(SIMPLE, batch)), [1, 4, 8, 9]);
});

const drawnPoints = fc.array(
  fc.record({
    at: fc.integer({ min: 1, max: 300 }),
    ms: fc.double({ min: 0, max: 1e4, noNaN: true }),
    weight: fc.integer({ min: 1, max: 9 }),
  }),
  { maxLength: 8 },
).map(isotonic);
const drawnCosts: fc.Arbitrary<CostTable> = fc.record({
  level: drawnPoints,
  verify: drawnPoints,
  extend: drawnPoints,
  catchUp: drawnPoints,
  prefill: drawnPoints,
  perCell: fc.double({ min: 0, max: 1, noNaN: true }),
  perRowCell: fc.double({ min: 0, max: 1, noNaN: true }),
  host: fc.double({ min: 0, max: 10, noNaN: true }),
}).map((lists) => ({ ...SIMPLE, ...lists }));

Deno.test("more of anything never costs less", () => {
  const count = fc.integer({ min: 0, max: 400 });
  fc.assert(
    fc.property(drawnCosts, count, count, fc.integer({ min: 0, max: 7 }), (costs, a, b, steps) => {
      const [few, many] = [Math.min(a, b), Math.max(a, b)];
      const most = (found: number, other: number) => assert.ok(found <= other * (1 + 1e-12) + 1e-9);
      const round = { batch: few + 1, steps, cells: few };
      most(roundMs(costs, round), roundMs(costs, { ...round, cells: many }));
      most(roundMs(costs, round), roundMs(costs, { ...round, batch: many + 1 }));
      most(roundMs(costs, round), roundMs(costs, { ...round, steps: steps + 1 }));
      most(roundMs(costs, { ...round, drafts: few % 9 }), roundMs(costs, round));
      most(catchUpMs(costs, few), catchUpMs(costs, many));
      most(prefillMs(costs, few), prefillMs(costs, many));
    }),
    { seed: 14, numRuns: 500 },
  );
});

Deno.test("no price is NaN, whatever is asked", () => {
  const absurd = fc.constantFrom(NaN, Infinity, -Infinity, -1, 0, 0.5, 3, 1e308);
  fc.assert(
    fc.property(
      drawnCosts,
      fc.record({
        batch: absurd,
        steps: absurd,
        cells: absurd,
        drafts: absurd,
        roundsPerSync: absurd,
      }),
      (costs, round) => {
        const ms = roundMs(costs, round);
        assert.ok(ms >= 0, `${ms} of ${JSON.stringify(round)}`);
      },
    ),
    { seed: 14, numRuns: 500 },
  );
});
