/** What may differ between two runs without a difference in their texts. */
import { HOST_ALGORITHMS, type HostAlgorithm } from "../../src/draft/algorithms.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";
import type { Configuration } from "./pairs.ts";

const DRAFT_MODELS = ["EAGLE3", "EAGLE", "STANDALONE"] as const;
type DraftModel = typeof DRAFT_MODELS[number];

export const AXES = {
  drafter: [...DRAFT_MODELS, ...HOST_ALGORITHMS] as readonly (DraftModel | HostAlgorithm)[],
  /** Steps of a chain, or a tree as `--draft-tree` writes it. */
  shape: ["1", "3", "7", "3:2:6", "5:4:8"],
  /** Who chooses how far a round drafts, see policies.ts. */
  policy: ["static", "restless", "cut", "budget"],
  maxBatch: [1, 2, 4],
  roundsPerSync: [1, "auto", 8],
  /** Formats of weights, and of keys and values. Each has its own kernels, so more pairs of them would show no more. */
  numbers: ["bf16, f32", "q8, f16", "q4, bf16"],
  /**
   * The kernels of software adapters, or those of hardware. A software adapter compiles and runs the latter slowly, so
   * they are taken only where a pair needs them.
   */
  kernels: ["software", "hardware"],
  /** See requests.ts. */
  requests: ["greedy", "sampled", "penalized", "constrained", "logprobs", "mixed"],
  /** KV pages: enough for all requests, or so few that requests are preempted. */
  pages: ["enough", "few"],
  /** Rows of a prompt forward: what suits the adapter, or so few that prompts are cut and their parts share one. */
  promptRows: ["usual", "few"],
  /** Groups of rounds that are submitted before one is read. */
  groups: ["one", "two"],
  prefixCache: [true, false],
  elasticDraft: [false, true],
  prediction: ["none", "right", "edited"],
  arrival: ["together", "one by one", "some leave"],
  /** Steps that a part of the requests asks for: with a tier for each, or none though every tier drafts. */
  ownSteps: ["no", "none", "0 and 1"],
} as const;

export type Case = Configuration<typeof AXES>;

/**
 * Values that only exhaustive runs have, beside named cases. SUFFIX proposes by the code that HYBRID also calls, and a
 * round takes its drafts as it takes NGRAM's (tests/engine/host_drafters_test.ts has its texts). Weights of 4 bits have
 * kernels of their own, as those of 8 bits have; tests/engine/quantized_test.ts tests them. Mixed requests are of every
 * kind, the first is greedy. tests/engine/tree_drafts_test.ts has trees of other widths.
 */
const EXHAUSTIVE_VALUES: readonly string[] = [
  ...["SUFFIX", "q4, bf16", "greedy", "penalized", "logprobs", "3:2:6"],
];

/** The values of an axis in this run. */
function valuesOf<T extends string>(values: readonly T[]): readonly T[] {
  return values.filter((value) => EXHAUSTIVE || !EXHAUSTIVE_VALUES.includes(value));
}

/** The axes of this run. */
export const RUN_AXES: { readonly [K in keyof Case]: readonly Case[K][] } = {
  ...AXES,
  drafter: valuesOf(AXES.drafter),
  shape: valuesOf(AXES.shape),
  numbers: valuesOf(AXES.numbers),
  requests: valuesOf(AXES.requests),
};

/** Values combined with the kernels of hardware: those with kernels of their own, or with other numbers of rows. */
const ON_HARDWARE: { readonly [K in keyof Case]?: readonly Case[K][] } = {
  // EAGLE's heads have the kernels of EAGLE-3's, whose verified rows have those of NGRAM's.
  drafter: ["EAGLE3", ...EXHAUSTIVE ? ["EAGLE" as const, "NGRAM" as const] : []],
  // Two requests verify 16 rows by 7 steps or by the tree; a budget compiles every number of steps.
  shape: ["3", ...EXHAUSTIVE ? ["7" as const] : [], "5:4:8"],
  policy: ["static", ...EXHAUSTIVE ? ["budget" as const] : []],
  maxBatch: [1, 2],
  roundsPerSync: [1, "auto"],
  // A named case has 4 bits.
  numbers: ["bf16, f32", ...EXHAUSTIVE ? ["q8, f16" as const] : [], "q4, bf16"],
  // Mixed requests are sampled, too.
  requests: ["greedy", ...EXHAUSTIVE ? ["sampled" as const] : [], "mixed"],
  promptRows: ["usual"],
  elasticDraft: [false],
  prediction: ["none", "edited"],
  arrival: ["together", "some leave"],
  ownSteps: ["no"],
};

/** Whether an engine takes these values together. Axes that are undefined are not chosen yet. */
export function isPossible(chosen: Partial<Case>): boolean {
  const { drafter, shape, policy, elasticDraft, ownSteps, kernels } = chosen;
  if (kernels === "hardware") {
    for (const [axis, values] of Object.entries(ON_HARDWARE)) {
      const value = chosen[axis as keyof Case];
      if (value !== undefined && !(values as readonly unknown[]).includes(value)) return false;
    }
  }
  const isModel = drafter === undefined || DRAFT_MODELS.some((each) => each === drafter);
  const isTree = shape?.includes(":") === true;
  const chooses = policy !== undefined && policy !== "static";
  if (!isModel && (isTree || chooses || elasticDraft)) return false;
  if (isTree && (chooses || elasticDraft || ownSteps === "0 and 1")) return false;
  // A draft leaves the GPU while the policy drafts nothing.
  return !(elasticDraft && policy !== undefined && policy !== "restless");
}
