/** The rule of kernels/round/allocate.wgsl in float64, for sequences of which only some drafts may be verified. */
import { allocate, survivals as chances } from "../../src/simulate/run/allocation.ts";
import type { VerifyBudget } from "../../src/speculate/policy.ts";

/** What a sequence brings. */
export interface Drafted {
  /** The draft's confidence at each position, [depth]. */
  readonly confidences: readonly number[];
  /** Drafts that may be verified. */
  readonly most: number;
}

/** Chances that each draft is reached and accepted, without those that are left out. */
export function survivals({ confidences, most }: Drafted, budget: VerifyBudget): number[] {
  return chances(confidences.slice(0, most), budget);
}

/** Drafts verified of each sequence. */
export function allocated(sequences: readonly Drafted[], budget: VerifyBudget): number[] {
  return allocate(sequences.map(({ confidences, most }) => confidences.slice(0, most)), budget);
}
