import assert from "node:assert/strict";
import { hash32 } from "../../src/speculate/noise.ts";

/** `count` repeatable numbers, uniform in [-1, 1). */
export function numbers(count: number, seed: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => hash32(seed, 0, i) / 2 ** 31 - 1);
}

/** 0 to count - 1 in a repeatable disorder. */
export function shuffled(count: number, seed: number): number[] {
  return Array.from({ length: count }, (_, i) => ({ i, key: hash32(seed, 1, i) }))
    .toSorted((a, b) => a.key - b.key).map(({ i }) => i);
}

/** Asserts `|actual - expected| <= tolerance * max(1, |expected|)` everywhere; names the worst. */
export function assertClose(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
  what: string,
): void {
  assert.equal(actual.length, expected.length, what);
  const errors = Array.from(expected, (wanted, i) => {
    const error = Math.abs((actual[i] ?? NaN) - wanted) / Math.max(1, Math.abs(wanted));
    return Number.isNaN(error) ? Infinity : error;
  });
  const worst = errors.reduce((at, error, i) => error > (errors[at] ?? 0) ? i : at, 0);
  const error = errors[worst] ?? 0;
  assert.ok(
    error <= tolerance,
    `${what}: [${worst}] is ${actual[worst]}, expected ${expected[worst]}, error ${error}`,
  );
}
