import { type PolicyKind, policyKind } from "../kind.ts";
import { epochPolicy } from "./epochs.ts";
import { backward, dot, factor, forward } from "./linear.ts";
import { LINEAR_RANGES, type LinearName, linearRule } from "./linear_arms.ts";
import { firstSteps, type NumberOptions, readNumbers } from "./options.ts";

type Options = NumberOptions<LinearName | "bonus">;

/**
 * LinUCB (Li et al. 2010, disjoint arms) over batch sizes, with the features and the reward of
 * linear_arms.ts, scaled by the largest reward so far:
 *
 *     argmax_k theta_k . x + bonus * sqrt(x^T A_k^-1 x),  theta_k = A_k^-1 b_k
 *     A_k = lambda I + sum x x^T,  b_k = sum r x
 *
 * An arm is kept for `hold` rounds, which are launched together.
 */
export const LINUCB: PolicyKind<Options> = policyKind({
  examples: [{}, { steps: [0, 1, 4], bonus: 3, hold: 1 }, { discount: 0.98, lambda: 0.01 }],
  adapts: { bursty: 0.74, why: "explores again at the second batch size; a switch has no cost" },
  check: (given) =>
    readNumbers(given, { ...LINEAR_RANGES, bonus: { absent: 1, min: 0, max: 100 } }),
  make: (options, setup) =>
    epochPolicy({
      steps: options.steps,
      setup,
      rule: linearRule(
        { ...options, numSteps: firstSteps(setup.numSteps) },
        ({ regression, x, scale }) => {
          const lower = factor(regression);
          const half = forward(lower, x);
          const theta = backward(lower, forward(lower, regression.b));
          return scale * dot(theta, x) + options.bonus * Math.sqrt(dot(half, half));
        },
      ),
    }),
});
