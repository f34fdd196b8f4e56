import { deepEqual, equal, ok } from "node:assert/strict";
import {
  interval,
  medianRatio,
  pairedRatio,
  percentiles,
  positiveInterval,
  spread,
  standardError,
} from "../../src/measure/statistics.ts";

function near(actual: number | null | undefined, expected: number, message?: string): void {
  ok(typeof actual === "number" && Math.abs(actual - expected) < 1e-6, `${message} ${actual}`);
}

Deno.test("spread: mean and sample standard deviation", () => {
  // deviations -3 -1 1 3: 20 / 3
  const { mean, sd } = spread([2, 4, 6, 8]);
  near(mean, 5);
  near(sd, Math.sqrt(20 / 3));
  deepEqual(spread([7]), { mean: 7, sd: null });
});

Deno.test("interval: Student's t, by hand", () => {
  // sd = sqrt(2.5), n = 5: half = 2.776445 * sqrt(2.5 / 5)
  const five = interval([1, 2, 3, 4, 5]);
  near(five?.low, 3 - 2.7764451 * Math.sqrt(0.5));
  near(five?.high, 3 + 2.7764451 * Math.sqrt(0.5));
  // three values: t(0.975, 2) = 4.302653, standard error 1 / sqrt 3
  near(interval([1, 2, 3])?.low, 2 - 4.3026527 / Math.sqrt(3));
  deepEqual(interval([4, 4, 4]), { low: 4, high: 4 });
  equal(interval([1]), undefined);
  equal(interval([1, 2]), undefined, "two blocks would give -4.9 to 7.9");
  equal(standardError([]), undefined);
});

Deno.test("positiveInterval: cut off at 0, and said so", () => {
  deepEqual(positiveInterval([4, 4, 4]), { low: 4, high: 4, cut: false });
  const wide = positiveInterval([1, 5, 30]);
  deepEqual([wide?.low, wide?.cut], [0, true]);
  equal(positiveInterval([1, 2]), undefined);
});

Deno.test("pairedRatio: the geometric mean of the blocks' ratios", () => {
  const { ratio, low, high } = pairedRatio([2, 4, 8].map(Math.log));
  near(ratio, 4);
  // sd of logs = ln 2, standard error = ln 2 / sqrt 3
  near(low, 4 * 2 ** (-4.3026527 / Math.sqrt(3)));
  near((high ?? 0) / 4 / 2 ** (4.3026527 / Math.sqrt(3)), 1);
  deepEqual(pairedRatio([0, 0]), { ratio: 1, low: null, high: null });
  deepEqual(pairedRatio([0]), { ratio: 1, low: null, high: null });
});

Deno.test("pairedRatio is blind to what slows a whole block", () => {
  const plain = [100, 50, 80];
  const own = plain.map((speed) => speed * 1.5);
  const { ratio, low, high } = pairedRatio(own.map((speed, at) => Math.log(speed / plain[at]!)));
  near(ratio, 1.5);
  near(low, 1.5);
  near(high, 1.5);
});

Deno.test("medianRatio: an interval of ranks, which a disturbed block does not widen", () => {
  // 9 blocks: fewer than 2 of 9 coins, 10 / 512 at either end; 12: fewer than 3, 79 / 4096.
  // 2000: fewer than 956, and the probability of no head at all is too small for a number.
  for (const [count, k] of [[6, 1], [8, 1], [9, 2], [11, 2], [12, 3], [2000, 956]] as const) {
    const logs = Array.from({ length: count }, (_, i) => (i * 5 % count) / 1000);
    const sorted = logs.toSorted((a, b) => a - b);
    const { low, high } = medianRatio(logs);
    near(low, Math.exp(sorted[k - 1] ?? NaN), `${count} low`);
    near(high, Math.exp(sorted[count - k] ?? NaN), `${count} high`);
  }
  const calm = medianRatio([0, 0, 0, 0, 0, 0, 0, 0, 7].map((slow) => Math.log(2) + slow));
  for (const value of [calm.ratio, calm.low, calm.high]) near(value, 2);
  deepEqual(medianRatio([0, 0, 0, 0, 0]), { ratio: 1, low: null, high: null });
});

Deno.test("percentiles interpolate between ranks as numpy does", () => {
  // numpy.percentile([10, 20, 30, 40], [50, 90, 99]) = 25, 37, 39.7
  const { p50, p90, p99 } = percentiles([40, 10, 30, 20]);
  near(p50, 25);
  near(p90, 37);
  near(p99, 39.7);
  deepEqual(percentiles([5]), { p50: 5, p90: 5, p99: 5 });
  deepEqual(percentiles([]), { p50: null, p90: null, p99: null });
});
