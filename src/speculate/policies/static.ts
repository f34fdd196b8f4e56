import { DEFAULT_NUM_STEPS } from "../fixed_shape.ts";
import { type Policy, PolicyError } from "../policy.ts";
import { chain, type DraftShape } from "../round_shape.ts";
import { type PolicyKind, policyKind } from "./kind.ts";
import { readOptions } from "./fields.ts";

export interface StaticOptions {
  /** Steps of a request that asks for none in particular; SGLang's automatic number where absent. */
  readonly numSteps: number | undefined;
}

/** SGLang without `--speculative-adaptive`. */
export const STATIC: PolicyKind<StaticOptions> = policyKind({
  examples: [{}, { num_steps: 0 }, { num_steps: 5 }],
  adapts: false,
  check(given) {
    const { num_steps } = readOptions(given, ["num_steps"]);
    if (num_steps === undefined) return { numSteps: undefined };
    if (Number.isSafeInteger(num_steps) && Number(num_steps) >= 0) {
      return { numSteps: Number(num_steps) };
    }
    throw new PolicyError(`num_steps must be an integer of at least 0, got ${num_steps}`);
  },
  make: ({ numSteps }, setup) => fixed(chain(numSteps ?? setup.numSteps ?? DEFAULT_NUM_STEPS)),
});

/** Each round is as deep as its deepest request asks for; requests without a setting use `tier`. */
export function fixed(tier: DraftShape): Policy<null> {
  return {
    tiers: [tier],
    start: null,
    pick: (_, { asked }) => {
      const steps = Math.max(0, ...asked.map((steps = tier.depth) => steps));
      return { tier: steps === tier.depth && asked.includes(undefined) ? tier : chain(steps) };
    },
    holds: () => Infinity,
    learn: (state) => ({ state }),
    report: () => ({ json: {}, rows: [] }),
  };
}
