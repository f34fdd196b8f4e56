import type { Policy } from "../policy.ts";

/** Always the same steps: SGLang without `--speculative-adaptive`. */
export function fixed(numSteps: number): Policy<null, unknown, unknown> {
  return {
    tiers: [numSteps],
    start: null,
    pick: () => numSteps,
    holds: () => Infinity,
    learn: (state) => ({ state }),
  };
}
