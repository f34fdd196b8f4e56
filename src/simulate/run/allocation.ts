import { logit, sigmoid } from "../../speculate/estimate/calibration.ts";
import type { VerifyBudget } from "../../speculate/policy.ts";

/** Log-odds are kept within these. */
const MOST_ODDS = 30;

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
  { drafts, slope, intercepts, leastConfidence }: VerifyBudget,
): number[] {
  const candidates: { readonly survives: number; readonly step: number; readonly at: number }[] =
    [];
  for (const [at, chain] of confidences.entries()) {
    let survives = 1;
    for (const [step, confidence] of chain.entries()) {
      if (confidence < leastConfidence) break;
      const odds = slope * logit(confidence) + (intercepts[step] ?? 0);
      survives *= sigmoid(Math.min(MOST_ODDS, Math.max(-MOST_ODDS, odds)));
      candidates.push({ survives, step, at });
    }
  }
  candidates.sort((a, b) => b.survives - a.survives || a.at - b.at || a.step - b.step);
  const depths: number[] = confidences.map(() => 0);
  // s never rises along a chain, so the selected drafts of a chain form a prefix.
  for (const { at } of candidates.slice(0, drafts)) depths[at] = (depths[at] ?? 0) + 1;
  return depths;
}
