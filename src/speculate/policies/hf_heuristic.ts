import { allowedSteps } from "../asked_steps.ts";
import type { Policy, PolicySetup, SequenceContext } from "../policy.ts";
import { chain, chains } from "../round_shape.ts";
import { numberOf, readOptions, stepsOf } from "./fields.ts";
import { type PolicyKind, policyKind } from "./kind.ts";

interface Options {
  readonly steps: readonly number[];
  /** K of a sequence's first round; absent: the requested number of steps, or 5. */
  readonly first: number | undefined;
}

/** Without 0: the schedule never stops drafting. */
const STEPS: readonly number[] = [1, 2, 3, 5, 7];
/** Transformers' `num_assistant_tokens` of the versions whose default schedule this was. */
const FIRST = 5;

/**
 * Hugging Face Transformers' `num_assistant_tokens_schedule = "heuristic"`, after each round
 *
 *     K = K + 2 where all drafts were accepted, else max(1, K - 1)
 *
 * In Transformers a batch has one sequence. Here each sequence has its own K, at most the deepest tier, and
 * the round runs with the shallowest tier that holds the largest K. Costs are not considered.
 */
export const HF_HEURISTIC: PolicyKind<Options> = policyKind({
  examples: [{}, { steps: [4], first: 1 }, { steps: [1, 2, 3, 4, 5, 6, 7], first: 7 }],
  adapts: {
    stationary: 0.48,
    bursty: 0.6,
    why: "weighs no cost: it drafts in large batches too, and never less than one token",
  },
  check(given) {
    const { steps, first } = readOptions(given, ["steps", "first"]);
    return {
      steps: stepsOf(steps, STEPS),
      first: first === undefined
        ? undefined
        : numberOf(first, "first", { absent: FIRST, min: 1, max: 16, integer: true }),
    };
  },
  make: heuristic,
});

/** The policy has no state: all that it needs is in the context. */
function heuristic({ steps, first }: Options, { numSteps }: PolicySetup): Policy<null> {
  const begin = first ?? numSteps ?? FIRST;
  return {
    tiers: chains(steps),
    start: null,
    packed: true,
    pick(_, { sequences, asked }) {
      const most = allowedSteps(steps, asked).at(-1) ?? 0;
      const depths = sequences.map((sequence, i) => (
        asked[i] === 0 ? 0 : Math.min(most, nextDepth(sequence, begin))
      ));
      const deepest = Math.max(0, ...depths);
      const tier = chain(steps.find((depth) => depth >= deepest) ?? most);
      return depths.every((depth) => depth === tier.depth) ? { tier } : { tier, depths };
    },
    // Each round may change it.
    holds: () => 1,
    learn: (state) => ({ state }),
    report: () => ({ json: {}, rows: [] }),
  };
}

/** The next K of a sequence; `begin` if it did not draft or nothing is known about it. */
function nextDepth({ depth, accepted }: SequenceContext, begin: number): number {
  const last = accepted.at(-1);
  if (depth === undefined || !Number.isInteger(depth) || depth < 1) return begin;
  if (last === undefined || !Number.isInteger(last)) return depth;
  return last >= depth ? depth + 2 : Math.max(1, depth - 1);
}
