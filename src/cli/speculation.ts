import type { OpenOptions } from "../engine/open.ts";
import { DEFAULT_PRESET, presetConfig, usage } from "../engine/presets.ts";
import { batchBuckets } from "../engine/programs.ts";
import { adaptively, asAsked } from "../engine/speculation.ts";
import { resolveAdaptive } from "../speculate/adaptive_arguments.ts";
import { adaptive } from "../speculate/policies/adaptive.ts";
import type { ChatOptions } from "./options.ts";

/** Depths that `/set num-steps` takes. */
const ALL_STEPS = [0, 1, 2, 3, 4, 5, 6, 7];

/** What the flags of the speculation group come to, once the draft is known. */
export function speculationOf(
  options: ChatOptions,
  { maxBatch, onWarning, allSteps = false }: {
    readonly maxBatch: number;
    readonly onWarning: (line: string) => void;
    /** Build every static depth, because it may change between requests. */
    readonly allSteps?: boolean;
  },
): NonNullable<OpenOptions["speculate"]> {
  const given = options.preset ?? options.adaptiveConfig;
  const config = presetConfig(given ?? DEFAULT_PRESET);
  return (algorithm) => {
    const resolved = usage(() =>
      resolveAdaptive({
        adaptive: options.adaptive || options.preset !== undefined,
        config,
        configGiven: given !== undefined,
        algorithm,
        eagleTopk: options.eagleTopk,
        numSteps: options.numSteps,
        numDraftTokens: options.numDraftTokens,
      })
    );
    for (const line of resolved.warnings) onWarning(line);
    const { numSteps, tiers } = resolved;
    if (resolved.policy === "adaptive") {
      const buckets = batchBuckets(maxBatch);
      const policy = adaptive(resolved.config, { initialSteps: numSteps, buckets });
      return { numSteps, steps: tiers, speculation: adaptively(policy) };
    }
    if ((options.eagleTopk ?? 1) > 1) {
      onWarning(
        `draft trees are not built yet: speculative_eagle_topk is 1, not ${options.eagleTopk}`,
      );
    }
    const steps = allSteps && algorithm !== "NONE" ? ALL_STEPS : [numSteps];
    return { numSteps, steps, speculation: asAsked() };
  };
}
