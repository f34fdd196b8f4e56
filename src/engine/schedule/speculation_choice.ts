import { resolveAdaptive, type SpeculationArguments } from "../../speculate/adaptive_arguments.ts";
import { adaptive } from "../../speculate/policies/adaptive.ts";
import type { Outputs } from "./output.ts";
import { usage } from "./presets.ts";
import { batchBuckets } from "../device/programs.ts";
import { adaptively, asAsked, type SpeculationPlan } from "./speculation.ts";

/** Depths that a request may ask for where all are built. */
const ALL_STEPS = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * How to speculate, as it was asked for and before it is known what the draft is. Plain data, which
 * structuredClone copies whole: it may be sent to a worker.
 */
export interface SpeculationChoice extends Omit<SpeculationArguments, "algorithm"> {
  /** Build every static depth, because requests may ask for any. */
  readonly allSteps: boolean;
}

/**
 * What the choice comes to with a draft of this kind. Warnings say what is not done as asked.
 *
 * @param of.maxBatch sequences in flight: the policy goes by the batch sizes that are built for them.
 * @throws UsageError where the steps are none of the adaptive config's candidates.
 */
export function speculationPlan(
  { allSteps, ...choice }: SpeculationChoice,
  { algorithm, maxBatch, onWarning }: {
    readonly algorithm: Outputs["algorithm"];
    readonly maxBatch: number;
    readonly onWarning: (line: string) => void;
  },
): SpeculationPlan {
  const resolved = usage(() => resolveAdaptive({ ...choice, algorithm }));
  for (const line of resolved.warnings) onWarning(line);
  const { numSteps, tiers } = resolved;
  if (resolved.policy === "adaptive") {
    const buckets = batchBuckets(maxBatch);
    const policy = adaptive(resolved.config, { initialSteps: numSteps, buckets });
    return { numSteps, steps: tiers, speculation: adaptively(policy) };
  }
  const { eagleTopk } = choice;
  if ((eagleTopk ?? 1) > 1) {
    onWarning(`draft trees are not built yet: speculative_eagle_topk is 1, not ${eagleTopk}`);
  }
  const steps = allSteps && algorithm !== "NONE" ? ALL_STEPS : [numSteps];
  return { numSteps, steps, speculation: asAsked(numSteps) };
}
