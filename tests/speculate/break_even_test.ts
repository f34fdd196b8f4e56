import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { breakEven, fitAlpha, type RoundCosts } from "../../src/speculate/break_even.ts";

const equation = breakEven();
const close = (got: number, wanted: number, within = 1e-12) =>
  ok(Math.abs(got - wanted) <= within * Math.max(1, Math.abs(wanted)), `${got}, not ${wanted}`);

const alphas = fc.double({ min: 0, max: 1, noNaN: true });
const steps = fc.integer({ min: 1, max: 64 });
const costs: fc.Arbitrary<RoundCosts> = fc.record({
  draft: fc.double({ min: 0.001, max: 2, noNaN: true }),
  verify: fc.double({ min: 0.1, max: 8, noNaN: true }),
});

Deno.test("break-even: the lesson's values", () => {
  close(equation.tokens(0.6, 4), 2.3056);
  close(equation.limit(0.6), 2.5);
  close(equation.tokens(0.6, 1e6), 2.5);
  equal(equation.tokens(1, 7), 8);
  equal(equation.tokens(0, 7), 1);
  equal(equation.limit(1), Infinity);
  const { speedup, cost } = equation.row(0.6, 4, { draft: 0.1, verify: 1 });
  close(cost, 1.4);
  close(speedup, 2.3056 / 1.4);
});

/** alpha, c, best K and its S at v = 1, K up to 16, of the equation in src/speculate/break_even.ts. */
const BEST: readonly (readonly [number, number, number, number])[] = [
  ...[[0.4, 0.02, 3, 1.53], [0.4, 0.05, 2, 1.42], [0.4, 0.1, 2, 1.30], [0.4, 0.2, 1, 1.17]],
  ...[[0.6, 0.02, 6, 2.17], [0.6, 0.05, 4, 1.92], [0.6, 0.1, 3, 1.67], [0.6, 0.2, 2, 1.40]],
  ...[[0.8, 0.02, 11, 3.82], [0.8, 0.05, 8, 3.09], [0.8, 0.1, 6, 2.47], [0.8, 0.2, 4, 1.87]],
  ...[[0.9, 0.05, 13, 4.67], [0.9, 0.1, 10, 3.43], [0.9, 0.2, 7, 2.37]],
] as [number, number, number, number][];

Deno.test("break-even: best steps by alpha and draft cost", () => {
  for (const [alpha, draft, wanted, speedup] of BEST) {
    const rows = Array.from(
      { length: 16 },
      (_, at) => equation.row(alpha, at + 1, { draft, verify: 1 }),
    );
    const best = equation.best(rows);
    deepEqual([best?.steps, best?.speedup.toFixed(2)], [wanted, speedup.toFixed(2)]);
  }
  equal(equation.best([equation.row(0.5, 1, { draft: 1, verify: 1 })]), undefined);
});

Deno.test("break-even: n is 1 + alpha + ... + alpha^K, near alpha 1 too", () => {
  const sum = (alpha: number, steps: number) =>
    Array.from({ length: steps + 1 }, (_, k) => alpha ** k).reduce((a, b) => a + b);
  for (const alpha of [1 - 1e-9, 1 - 1e-14]) close(equation.tokens(alpha, 7), sum(alpha, 7));
  fc.assert(fc.property(alphas, steps, (alpha, steps) => {
    const n = equation.tokens(alpha, steps);
    close(n, sum(alpha, steps), 1e-10);
    ok(n >= 1 - 1e-12 && n <= steps + 1 + 1e-9 && n <= equation.limit(alpha) * (1 + 1e-12));
  }));
});

Deno.test("break-even: at the least alpha S is 1, below it is slower, above it is not", () => {
  fc.assert(fc.property(steps, costs, (steps, costs) => {
    const { minAlpha: least, cost } = equation.row(0.5, steps, costs);
    const speedup = (alpha: number) => equation.row(alpha, steps, costs).speedup;
    if (least === null) return ok(speedup(1) < 1);
    if (cost <= 1) return equal(least, 0);
    close(speedup(least), 1, 1e-9);
    ok(speedup(least * 0.99) < 1);
    ok(speedup(Math.min(1, least * 1.01)) >= 1 - 1e-12);
  }));
  // K = 1: n = 1 + alpha > c + v.
  close(equation.row(0.5, 1, { draft: 0.2, verify: 1.1 }).minAlpha ?? NaN, 0.3);
});

Deno.test("break-even: the fewest and the most steps that pay, against trying all", () => {
  fc.assert(fc.property(alphas, costs, (alpha, costs) => {
    const tried = Array.from({ length: 400 }, (_, at) => at + 1)
      .filter((steps) => equation.row(alpha, steps, costs).speedup > 1);
    const [first, last = NaN] = equation.paying(alpha, costs) ?? [];
    if (tried.length > 0 || last <= 400) {
      deepEqual([first, Math.min(last, 400)], [tried[0], tried.at(-1) ?? NaN]);
    }
  }));
  deepEqual(equation.paying(0.6, { draft: 0, verify: 1 }), [1, Infinity]);
  equal(equation.paying(0.6, { draft: 0, verify: 3 }), undefined);
  deepEqual(equation.paying(1, { draft: 0.9, verify: 1.5 }), [6, Infinity]);
  deepEqual(equation.paying(0.6, { draft: 1e-6, verify: 1 }), [1, 1_499_999]);
});

Deno.test("break-even: at the most draft cost S is 1", () => {
  fc.assert(fc.property(alphas, steps, costs, (alpha, steps, { verify }) => {
    const draft = equation.maxDraftCost(alpha, steps, verify);
    close(equation.row(alpha, steps, { draft, verify }).speedup, 1, 1e-9);
  }));
});

Deno.test("fit: the alpha of rates that are its powers, and accepted over tested drafts of any", () => {
  fc.assert(fc.property(alphas, steps, (alpha, steps) => {
    close(fitAlpha(Array.from({ length: steps }, (_, k) => alpha ** (k + 1))), alpha, 1e-9);
  }));
  fc.assert(fc.property(
    fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1 }),
    (accepted) => {
      const rates = [1, 2, 3, 4, 5]
        .map((position) => accepted.filter((count) => count >= position).length / accepted.length);
      const all = accepted.reduce((a, b) => a + b);
      const rejected = accepted.filter((count) => count < 5).length;
      close(fitAlpha(rates), all / (all + rejected));
    },
  ));
  equal(fitAlpha([]), 0);
});
