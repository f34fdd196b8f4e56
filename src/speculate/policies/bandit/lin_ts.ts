import { type PolicyKind, policyKind } from "../kind.ts";
import { epochPolicy } from "./epochs.ts";
import { backward, dot, factor, forward, type Vector } from "./linear.ts";
import { LINEAR_RANGES, type LinearName, linearRule } from "./linear_arms.ts";
import { firstSteps, type NumberOptions, readNumbers } from "./options.ts";

type Options = NumberOptions<LinearName | "spread">;

/**
 * Linear Thompson sampling (Agrawal and Goyal 2013) over batch sizes, with the features and the reward
 * of linear_arms.ts, scaled by the largest reward so far:
 *
 *     argmax_k theta~_k . x,  theta~_k ~ N(A_k^-1 b_k, spread^2 A_k^-1)
 *
 * An arm is kept for `hold` rounds, which are launched together.
 */
export const LIN_TS: PolicyKind<Options> = policyKind({
  examples: [{}, { steps: [0, 1, 4], spread: 1, hold: 1 }, { discount: 0.98, lambda: 0.01 }],
  adapts: {
    bursty: 0.74,
    improved: 0.5,
    why: "samples of all arms in each epoch; sums over all time are slow to follow a change",
  },
  check: (given) =>
    readNumbers(given, { ...LINEAR_RANGES, spread: { absent: 0.3, min: 0, max: 100 } }),
  make: (options, setup) =>
    epochPolicy({
      steps: options.steps,
      setup,
      rule: linearRule(
        { ...options, numSteps: firstSteps(setup.numSteps) },
        ({ regression, x, scale, draw }) => {
          const lower = factor(regression);
          const theta = backward(lower, forward(lower, regression.b));
          const noise = backward(lower, normals(draw));
          return scale * dot(theta, x) + options.spread * dot(noise, x);
        },
      ),
    }),
});

/** Three independent standard normal numbers, by Box and Muller, of four uniform ones. */
function normals(draw: (purpose: number) => number): Vector {
  const radius = (purpose: number) => Math.sqrt(-2 * Math.log(1 - draw(purpose)));
  const [first, second] = [radius(0), radius(2)];
  const [angle, other] = [2 * Math.PI * draw(1), 2 * Math.PI * draw(3)];
  return [first * Math.cos(angle), first * Math.sin(angle), second * Math.cos(other)];
}
