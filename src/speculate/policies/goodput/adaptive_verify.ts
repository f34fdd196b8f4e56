import type { Decision, RoundContext } from "../../policy.ts";
import { chain } from "../../round_shape.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { cutChain } from "./cut_chain.ts";
import type { Evidence } from "./evidence.ts";
import { type Pricing, pricing } from "./pricing.ts";
import { candidates, choiceOf, optionsOf } from "./rounds.ts";
import { numStepsOf, readOptions } from "../fields.ts";

export interface AdaptiveVerifyOptions {
  /** Drafts of each request. */
  readonly numSteps: number;
}

/**
 * vLLM's adaptive verification (pull requests 47808 and 52228): every request drafts `num_steps`
 * tokens, and a round verifies the N most likely of them,
 *
 *     N = argmax of (B + sum of the N largest survivals) / ms(B, N)
 *
 * Survival is the product of sigmoid(slope logit(c_k) + b_k), c the draft's confidence, fitted by a
 * damped Newton step every 100 rounds. N is computed from the chains of earlier rounds; the device then
 * selects the N drafts from this round's confidences. If the draft does not report its confidence, both
 * come from the requests' history of acceptance.
 */
export const ADAPTIVE_VERIFY: PolicyKind<AdaptiveVerifyOptions> = policyKind({
  costs: true,
  examples: [{}, { num_steps: 3 }],
  check(given) {
    const { num_steps } = readOptions(given, ["num_steps"]);
    return { numSteps: numStepsOf(num_steps) };
  },
  make({ numSteps }, { buckets }) {
    const prices = pricing({ buckets });
    return cutChain(
      { numSteps, buckets },
      (known, context, numSteps) => choose(known, context, { numSteps, prices }),
    );
  },
});

function choose(
  evidence: Evidence,
  context: RoundContext,
  { numSteps, prices }: { readonly numSteps: number; readonly prices: Pricing },
): Decision {
  if (context.batchSize === 0) return { tier: chain(numSteps) };
  const drafts = candidates(evidence, context, numSteps);
  const [best] = optionsOf([numSteps], drafts, prices(context, evidence.timings));
  if (best === undefined) throw new Error(`no option of ${numSteps} steps`);
  return choiceOf(best, drafts, { evidence, context });
}
