import { BUDGET_INTERCEPTS, BUDGET_MAX, BUDGET_WORDS } from "../../../../kernels/round/allocate.ts";
import type { VerifyBudget } from "../../../speculate/policy.ts";

/** Numbers that a policy fits are kept within this, so that products with log-odds stay finite. */
const MAX = 1e6;

/**
 * `Budget` of kernels/round/allocate.wgsl.
 *
 * @param most drafts of each sequence that may be verified, [batch].
 */
export function packBudget(
  { drafts, slope, intercepts, minConfidence }: VerifyBudget,
  most: readonly number[],
): Uint32Array {
  const words = new Uint32Array(BUDGET_WORDS);
  const floats = new Float32Array(words.buffer);
  const kept = (x: number) => Math.min(MAX, Math.max(-MAX, x));
  words[0] = drafts;
  floats[1] = kept(slope);
  floats[2] = kept(minConfidence);
  floats.set(intercepts.map(kept), BUDGET_INTERCEPTS);
  words.set(most, BUDGET_MAX);
  return words;
}
