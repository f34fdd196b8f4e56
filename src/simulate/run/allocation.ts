import { logit, sigmoid } from "../../speculate/estimate/calibration.ts";
import type { VerifyBudget } from "../../speculate/policy.ts";

/** Log-odds are kept within these. */
const MAX_ODDS = 30;

/**
 * How many drafts of each sequence are verified, as the device chooses (see VerifyBudget): the
 * `drafts` largest of all chances s_j that draft j is reached and accepted. Of equal ones an earlier
 * sequence goes first. In float64, the kernel's in f32.
 *
 * @param confidences of the drafts, [sequences][depth].
 * @returns [sequences], 0 to depth.
 */
export function allocate(
  confidences: readonly (readonly number[])[],
  budget: VerifyBudget,
): number[] {
  const candidates = confidences
    .flatMap((chain, at) => survivals(chain, budget).map((survives) => ({ survives, at })))
    .sort((a, b) => b.survives - a.survives); // stable
  const depths: number[] = confidences.map(() => 0);
  // s never rises along a chain, so the selected drafts of a chain form a prefix.
  for (const { at } of candidates.slice(0, budget.drafts)) depths[at] = (depths[at] ?? 0) + 1;
  return depths;
}

/** s of each draft of a chain, up to the first whose confidence is below the least. */
export function survivals(
  chain: readonly number[],
  { slope, intercepts, minConfidence }: VerifyBudget,
): number[] {
  const end = chain.findIndex((confidence) => confidence < minConfidence);
  let survives = 1;
  return chain.slice(0, end < 0 ? chain.length : end).map((confidence, step) => {
    const odds = slope * logit(confidence) + (intercepts[step] ?? 0);
    survives *= sigmoid(Math.min(MAX_ODDS, Math.max(-MAX_ODDS, odds)));
    return survives;
  });
}
