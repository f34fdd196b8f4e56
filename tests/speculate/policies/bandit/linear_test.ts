import assert from "node:assert/strict";
import {
  backward,
  dot,
  factor,
  forward,
  observe,
  type Regression,
  ridge,
  type Vector,
} from "../../../../src/speculate/policies/bandit/linear.ts";
import { features } from "../../../../src/speculate/policies/bandit/linear_arms.ts";

/** theta = A^-1 b */
function theta(regression: Regression): Vector {
  const lower = factor(regression);
  return backward(lower, forward(lower, regression.b));
}

function observed(batches: readonly number[], of: (x: Vector) => number, discount = 1): Regression {
  return batches.reduce((all, batch) => {
    const x = features(batch);
    return observe(all, { x, reward: of(x), discount, lambda: 1e-9 });
  }, ridge(1e-9));
}

function near(found: readonly number[], wanted: readonly number[], within: number): void {
  for (const [i, each] of found.entries()) {
    assert(Math.abs(each - (wanted[i] ?? NaN)) < within, `${found} for ${wanted}`);
  }
}

Deno.test("linear: features of a batch", () => {
  assert.deepEqual(features(8), [1, 3, 9]);
  assert.deepEqual(features(1), [1, 0, 0]);
  assert.deepEqual(features(0), [1, 0, 0]);
});

Deno.test("linear: a law of the features is found again", () => {
  const truth: Vector = [3, -0.5, 0.02];
  const batches = [1, 2, 5, 16, 64, 128, 3];
  near(theta(observed(batches, (x) => dot(truth, x))), truth, 1e-6);
});

Deno.test("linear: the factors solve A y = b, with the ridge", () => {
  const all = observe(observe(ridge(2), { x: [1, 2, 4], reward: 3, discount: 1, lambda: 2 }), {
    x: [1, 1, 1],
    reward: 1,
    discount: 1,
    lambda: 2,
  });
  const [a00, a01, a02, a11, a12, a22] = all.a;
  assert.deepEqual(all.a, [4, 3, 5, 7, 9, 19]);
  assert.deepEqual(all.b, [4, 7, 13]);
  const y = theta(all);
  near([dot([a00, a01, a02], y), dot([a01, a11, a12], y), dot([a02, a12, a22], y)], all.b, 1e-12);
});

Deno.test("linear: what was there before counts less, the ridge stays", () => {
  const old = observed([1, 2, 4, 8, 16].flatMap((batch) => [batch, batch]), () => 1, 0.5);
  const all = [1, 4, 16, 1, 4, 16, 1, 4, 16, 1, 4, 16].reduce((sum, batch) => (
    observe(sum, { x: features(batch), reward: 2, discount: 0.5, lambda: 1e-9 })
  ), old);
  near([dot(theta(all), features(8))], [2], 0.02);
  const x: Vector = [0, 0, 0];
  assert.deepEqual(observe(ridge(3), { x, reward: 0, discount: 0.5, lambda: 3 }).a, ridge(3).a);
});
