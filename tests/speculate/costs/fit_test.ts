import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { fitCosts, isotonic, median, type Reading } from "../../../src/speculate/costs/fit.ts";
import { roundMs } from "../../../src/speculate/costs/lookup.ts";
import { parseCosts } from "../../../src/speculate/costs/parse.ts";

const NAMES = { adapter: "an adapter", model: "target", draft: "head", buckets: [1, 2, 4] };

const value = (at: number, ms: number, weight = 1) => ({ at, ms, weight });

Deno.test("isotonic: neighbours that fall become their weighed mean", () => {
  assert.deepEqual(isotonic([]), []);
  assert.deepEqual(isotonic([value(4, 2), value(1, 1), value(8, 2)]), [
    { at: 1, ms: 1 },
    { at: 4, ms: 2 },
    { at: 8, ms: 2 },
  ]);
  assert.deepEqual(isotonic([value(1, 1), value(2, 5, 3), value(3, 1), value(4, 9)]), [
    { at: 1, ms: 1 },
    { at: 2, ms: 4 },
    { at: 3, ms: 4 },
    { at: 4, ms: 9 },
  ]);
  // A late low value pools with all before it.
  assert.deepEqual(isotonic([value(1, 6), value(2, 7), value(3, 2)]).map(({ ms }) => ms), [
    5,
    5,
    5,
  ]);
  assert.deepEqual(isotonic([value(2, 1), value(2, 4, 2)]), [{ at: 2, ms: 3 }]);
});

Deno.test("isotonic: no rising list is nearer", () => {
  const drawn = fc.array(
    fc.record({
      at: fc.integer({ min: 1, max: 5 }),
      ms: fc.integer({ min: 0, max: 6 }),
      weight: fc.integer({ min: 1, max: 3 }),
    }),
    { minLength: 1, maxLength: 7 },
  );
  fc.assert(
    fc.property(drawn, fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 5 }), (all, rises) => {
      const points = isotonic(all);
      const fitted = new Map(points.map(({ at, ms }) => [at, ms]));
      assert.ok(points.every(({ at, ms }, i) => {
        const before = points[i - 1];
        return before === undefined || (at > before.at && ms >= before.ms);
      }));
      // Any other rising list.
      let level = 0;
      const other = new Map([1, 2, 3, 4, 5].map((at) => [at, level += rises[at - 1] ?? 0]));
      const far = (of: ReadonlyMap<number, number>) =>
        all.reduce((sum, { at, ms, weight }) => sum + weight * (ms - (of.get(at) ?? 0)) ** 2, 0);
      assert.ok(far(fitted) <= far(other) + 1e-9);
    }),
    { seed: 14, numRuns: 1000 },
  );
});

Deno.test("median: the middle, of an even number the mean of both", () => {
  assert.deepEqual([median([]), median([3, 1, 2]), median([4, 1, 3, 2])], [undefined, 2, 2.5]);
});

const reading = (
  part: Reading["part"],
  { at = 0, batch = 1, cells = 0, ms }: Partial<Reading> & { readonly ms: number },
): Reading => ({ part, at, batch, cells, ms });

/** Readings as a machine would give them whose rounds cost exactly what a table says. */
function readingsOf(noise: (i: number) => number): Reading[] {
  const found: Reading[] = [];
  for (const batch of [1, 2, 4]) {
    for (const steps of [0, 1, 3]) {
      for (const context of batch === 2 ? [16, 216] : [16]) {
        for (let repeat = 0; repeat < 5; repeat++) {
          const f = noise(repeat);
          const rows = batch * (steps + 1);
          const at = { batch, cells: batch * context };
          const verify = 4 + 0.5 * rows + (0.002 + 0.0005 * (steps + 1)) * at.cells;
          found.push(reading("verify", { ...at, at: rows, ms: verify * f }));
          if (steps > 0) found.push(reading("extend", { ...at, at: rows, ms: (1 + rows / 8) * f }));
          if (steps > 1) found.push(reading("level", { ...at, at: batch, ms: (1 + batch) * f }));
          found.push(reading("host", { ...at, ms: 0.25 }));
        }
      }
    }
  }
  return found;
}

Deno.test("fitCosts: finds the table that readings come from, outliers or not", () => {
  for (const noise of [() => 1, (i: number) => [1, 1, 1, 9, 0.4][i] ?? 1]) {
    const costs = fitCosts(readingsOf(noise), NAMES);
    assert.ok(Math.abs(costs.perCell - 0.002) < 1e-9, `perCell ${costs.perCell}`);
    assert.ok(Math.abs((costs.perRowCell ?? 0) - 0.0005) < 1e-9, `${costs.perRowCell}`);
    assert.ok(costs.fitError < 1e-9, `fit error ${costs.fitError}`);
    assert.deepEqual([costs.host, costs.catchUp, costs.prefill], [0.25, [], []]);
    const ms = roundMs(costs, { batch: 4, steps: 3, cells: 100 });
    assert.ok(Math.abs(ms - (2 * 5 + 12 + 0.4 + 3 + 0.25)) < 1e-9, `${ms}`);
    assert.deepEqual(parseCosts(JSON.parse(JSON.stringify(costs))), costs);
  }
});

Deno.test("fitCosts: cells and rows times cells are told apart, and neither is negative", () => {
  const fit = (ms: (cells: number, rows: number) => number, rows: readonly number[]) => {
    const readings = rows.flatMap((at) =>
      [20, 500].map((cells) => reading("verify", { at, cells, ms: 3 + at + ms(cells, at) }))
    );
    const { perCell, perRowCell = 0 } = fitCosts(readings, NAMES);
    return [perCell, perRowCell].map((each) => Math.round(each * 1e6) / 1e6);
  };
  assert.deepEqual(fit((cells) => 0.01 * cells, [1, 4]), [0.01, 0]);
  assert.deepEqual(fit((cells, rows) => 0.01 * cells * rows, [1, 4]), [0, 0.01]);
  assert.deepEqual(fit((cells, rows) => 0.01 * cells * (rows ** 2 - 0.5), [1, 4])[0], 0);
  assert.deepEqual(fit((cells, rows) => 0.01 * cells / rows, [1, 4])[1], 0);
  assert.deepEqual(fit((cells) => 0.01 * cells, [1]), [0.01, 0]);
});

Deno.test("fitCosts: the error is what the table differs from a median by", () => {
  const readings = [[1, 4], [2, 2], [4, 8]].map(([at, ms = 0]) =>
    reading("verify", { at: at as number, ms })
  );
  const { verify, fitError } = fitCosts(readings, NAMES);
  assert.deepEqual(verify.map(({ ms }) => ms), [3, 3, 8]);
  assert.equal(fitError, 0.5);
});

Deno.test("fitCosts: more cells never cost less, and absurd readings are left out", () => {
  const cheaper = [[10, 5], [500, 4]].map(([cells = 0, ms = 0]) =>
    reading("verify", { at: 1, cells, ms })
  );
  const absurd = [NaN, Infinity, -1].flatMap((ms) => [
    reading("verify", { at: 1, cells: 10, ms }),
    reading("level", { at: 1, ms }),
  ]);
  const costs = fitCosts([...cheaper, ...absurd], NAMES);
  assert.deepEqual([costs.perCell, costs.verify], [0, [{ at: 1, ms: 5 }]]);
  assert.deepEqual(costs.level, []);
  const clocks = [-2, -1, -1].map((ms) => reading("host", { ms }));
  assert.equal(fitCosts(clocks, NAMES).host, 0);
});

Deno.test("fitCosts: packing is the median of differences, and none where clocks make it negative", () => {
  const reading = (part: Reading["part"], ms: number): Reading => ({
    part,
    at: part === "verify" ? 1 : 0,
    batch: 1,
    cells: 0,
    ms,
  });
  const fitted = (...differences: readonly number[]) =>
    fitCosts([
      reading("verify", 1),
      ...differences.map((ms) => reading("packing", ms)),
    ], NAMES);
  assert.equal(fitted(-0.1, 0.2, 0.3).packing, 0.2);
  assert.equal(fitted(-0.1, -0.2, 0.3).packing, undefined);
  assert.equal(fitted().packing, undefined);
  assert.equal(fitted(-0.1, 0.2, 0.3).fitError, 0);
});

Deno.test("fitCosts: a verify forward that the clock saw no time of can be parsed", () => {
  const none: Reading = { part: "verify", at: 1, batch: 1, cells: 56, ms: 0 };
  const costs = fitCosts([none, { ...none, at: 8, ms: 0.2 }], NAMES);
  assert(roundMs(parseCosts(costs), { batch: 1, steps: 0, cells: 0 }) > 0);
});
