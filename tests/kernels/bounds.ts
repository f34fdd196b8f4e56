/** What float32 may lose in a sum of products, for tests of matmuls. */
import assert from "node:assert/strict";

/** A value in float64 and how far from it float32 may end. */
export interface Bounded {
  readonly value: number;
  readonly bound: number;
}

/** Half a unit in the last place of 1. */
export const EPSILON: number = 2 ** -24;
/** Most that silu or gelu amplify an error of their input. */
const STEEPEST = 1.2;
/** Rounding errors of exp or tanh and the divisions around them, in epsilons. */
const OF_GATE = 64;

/**
 * One sum of products: a product goes through at most k / lanes fused additions along its lane and
 * `lanes` more across, each of which errs by at most epsilon of the sum of magnitudes.
 */
export function boundedDot(x: Float32Array, w: Float32Array, lanes: number): Bounded {
  let [value, magnitude] = [0, 0];
  for (let i = 0; i < x.length; i++) {
    const product = (x[i] ?? NaN) * (w[i] ?? NaN);
    value += product;
    magnitude += Math.abs(product);
  }
  return { value, bound: (8 * Math.ceil(x.length / 8 / lanes) + lanes + 1) * EPSILON * magnitude };
}

/** gate(y) times up, `gate` being what the function gives at y. */
export function gated(gate: number, y: Bounded, up: Bounded): Bounded {
  const gateBound = STEEPEST * y.bound + OF_GATE * EPSILON * Math.abs(gate);
  return {
    value: gate * up.value,
    bound: gateBound * (Math.abs(up.value) + up.bound) + (Math.abs(gate) + 1e-30) * up.bound,
  };
}

/** Fails where a value lies outside its bound. */
export function assertWithin(actual: ArrayLike<number>, expected: readonly Bounded[]): void {
  assert.equal(actual.length, expected.length);
  for (const [i, { value, bound }] of expected.entries()) {
    const error = Math.abs((actual[i] ?? NaN) - value);
    assert.ok(error <= bound, `[${i}] is ${actual[i]}, expected ${value} within ${bound}`);
  }
}
