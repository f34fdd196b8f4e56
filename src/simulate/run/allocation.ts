import type { VerifyBudget } from "../../speculate/policy.ts";
import { logit, sigmoid } from "../acceptance/chance.ts";

/**
 * How many drafts of each sequence are verified, as the device chooses (see VerifyBudget): the
 * `drafts` largest of all chances s_j that draft j is reached and accepted. Of equal ones an earlier
 * draft goes first, then an earlier sequence.
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
      survives *= sigmoid(slope * logit(confidence) + (intercepts[step] ?? 0));
      candidates.push({ survives, step, at });
    }
  }
  candidates.sort((a, b) => b.survives - a.survives || a.step - b.step || a.at - b.at);
  const depths: number[] = confidences.map(() => 0);
  // s falls along a chain and equal ones rise by step, so what is taken of a chain is a prefix.
  for (const { at } of candidates.slice(0, drafts)) depths[at] = (depths[at] ?? 0) + 1;
  return depths;
}
