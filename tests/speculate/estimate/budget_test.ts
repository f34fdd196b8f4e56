import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  bestBudget,
  expectedAccepted,
  rankBatches,
  rankDrafts,
  shareOut,
} from "../../../src/speculate/estimate/budget.ts";

/** Chains of chances, each that a draft is accepted if the drafts before it were. */
const drawnChains = fc.integer({ min: 1, max: 7 }).chain((depth) =>
  fc.record({
    depth: fc.constant(depth),
    chances: fc.array(
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: depth, maxLength: depth }),
      { minLength: 1, maxLength: 9 },
    ),
  })
);

function survivals(chances: readonly (readonly number[])[]): Float64Array {
  return Float64Array.from(chances.flatMap((chain) => {
    let survival = 1;
    return chain.map((chance) => survival *= chance);
  }));
}

/** Survivals that differ by less than this may rank alike. */
const FINE = 1 / 1024;

Deno.test("budget: the N most likely drafts are prefixes, and there is no better choice of N", () => {
  fc.assert(fc.property(drawnChains, fc.nat(), ({ chances, depth }, some) => {
    const all = survivals(chances);
    const drafts = some % (all.length + 1);
    const ranked = rankDrafts(all, depth);
    const depths = shareOut(ranked, { drafts, depth });
    assert.equal(depths.reduce((sum, each) => sum + each, 0), drafts);
    const worth = depths.reduce(
      (sum, each, chain) =>
        sum + all.slice(chain * depth, chain * depth + each).reduce((a, b) => a + b, 0),
      0,
    );
    const best = [...all].toSorted((a, b) => b - a).slice(0, drafts).reduce((a, b) => a + b, 0);
    assert(worth >= best - drafts * FINE, `${worth} of ${best}`);
    const curve = expectedAccepted([ranked], { depth, batch: chances.length });
    assert(Math.abs((curve[drafts] ?? 0) - worth) < 1e-9 + drafts * FINE);
    assert(Math.abs((curve.at(-1) ?? 0) - all.reduce((a, b) => a + b, 0)) < 1e-9);
  }));
});

Deno.test("budget: fewer levels are those levels alone", () => {
  const all = survivals([[0.9, 0.9, 0.9], [0.5, 0.1, 0.1]]);
  const ranked = rankDrafts(all, 3);
  assert.deepEqual(shareOut(ranked, { drafts: 3, depth: 3 }), [3, 0]);
  assert.deepEqual(shareOut(ranked, { drafts: 3, depth: 2 }), [2, 1]);
  const curve = expectedAccepted([ranked], { depth: 1, batch: 2 });
  assert.deepEqual([...curve].map((each) => each.toFixed(6)), ["0.000000", "0.900000", "1.400000"]);
});

Deno.test("budget: chains of several rounds are ranked round by round", () => {
  const chances = [[0.9], [0.1], [0.8], [0.2]];
  const mean = (
    batch: number,
  ) => [
    ...expectedAccepted(rankBatches(survivals(chances), { depth: 1, batch }), { depth: 1, batch }),
  ];
  const near = (found: readonly number[], wanted: readonly number[]) =>
    assert(found.every((each, i) => Math.abs(each - (wanted[i] ?? NaN)) < 1e-9), `${found}`);
  // One draft of one request: its chance is the mean over rounds, not the best round's.
  near(mean(1), [0, 0.5]);
  near(mean(2), [0, 0.85, 1]);
  // If the batch is larger than the sample, each chain stands for two, or for one and a half.
  near(mean(8), [0, 0.9, 1.8, 2.6, 3.4, 3.6, 3.8, 3.9, 4]);
  near(
    mean(6),
    [0, 0.9, 1.75, 2.55, 2.75, 2.9, 3].map((each, n) => n === 2 ? 1.7 + 0.05 * 0 : each)
      .map((each, n) => n === 2 ? 0.9 * 1.5 + 0.8 * 0.5 : each)
      .map((each, n) => n === 3 ? 0.9 * 1.5 + 0.8 * 1.5 : each)
      .map((each, n) => n === 4 ? 0.9 * 1.5 + 0.8 * 1.5 + 0.2 : each)
      .map((each, n) => n === 5 ? 0.9 * 1.5 + 0.8 * 1.5 + 0.3 + 0.05 : each),
  );
});

Deno.test("budget: as many drafts as pay, to the end of a step of the price", () => {
  const curve = expectedAccepted(
    [rankDrafts(survivals([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]]), 3)],
    { depth: 3, batch: 2 },
  );
  const prices = (verify: readonly number[], whole: number) => (
    { batch: 2, depth: 3, least: 0, fixed: 0.2, perRow: 0, verify, whole }
  );
  // Up to 6 rows cost the same, which is 4 drafts and the two roots.
  const step = [1, 1, 1, 1, 1, 1, 1, 2, 2];
  assert.equal(bestBudget(curve, prices(step, 2.2)).drafts, 4);
  assert.equal(bestBudget(curve, prices(step.map(() => 1), 1.2)).drafts, 6, "free rows");
  assert.equal(bestBudget(curve, prices([1, 1, 1, 9, 9, 9, 9, 9, 9], 9.2)).drafts, 0);
  const dear = { ...prices([1, 1, 1, 9, 10, 20, 30, 40, 50], 50.2), least: 2 };
  assert.equal(bestBudget(curve, dear).drafts, 2);
  assert.equal(bestBudget(curve, { ...prices(step, 82.2), perRow: 10 }).drafts, 0);
  const rows = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  fc.assert(fc.property(fc.double({ min: 0.01, max: 3, noNaN: true }), (row) => {
    const verify = rows.map((n) => 1 + n * row);
    const found = bestBudget(curve, prices(verify, 0.2 + (verify[8] ?? 0)), 0);
    const rate = (n: number) => (2 + (curve[n] ?? 0)) / (0.2 + (verify[2 + n] ?? 0));
    for (let n = 0; n <= 6; n++) assert(rate(found.drafts) >= rate(n) - 1e-12);
    assert.equal(found.tokens, 2 + (curve[found.drafts] ?? 0));
  }));
});
