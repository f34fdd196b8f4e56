import { asUsageError } from "../../engine/schedule/presets.ts";
import { UsageError } from "../../errors.ts";
import { DEFAULT_NUM_STEPS, fixedShape } from "../../speculate/fixed_shape.ts";
import {
  type AdaptiveConfig,
  middleSteps,
  parseAdaptiveConfig,
  unionSteps,
  withInitialSteps,
} from "../../speculate/adaptive_config.ts";
import { EMA_GENERATIONS } from "../../speculate/policies/ema_generations.ts";
import { THROUGHPUT_AWARE } from "../../speculate/policies/goodput/throughput_aware.ts";
import { chain, type DraftShape } from "../../speculate/round_shape.ts";
import { speculationOf } from "../open/speculation.ts";
import type { ServeCommandOptions } from "../options/options.ts";
import { policyOf } from "../options/policy_option.ts";

type Json = Readonly<Record<string, unknown>>;

/** How far is drafted. */
export type Depth =
  /** Undefined: the engine's own choice for the architecture. */
  | { readonly kind: "fixed"; readonly tier: DraftShape | undefined }
  | {
    readonly kind: "adaptive";
    /** SGLang's file. */
    readonly json: Json;
    /** The same, checked; undefined of its strategy `throughput_aware`. */
    readonly config: AdaptiveConfig | undefined;
    /** What it begins with. */
    readonly numSteps: number;
  };

export const PLAIN: Depth = { kind: "fixed", tier: chain(0) };

interface DepthWithNotes {
  readonly depth: Depth;
  readonly notes: readonly string[];
}

/** The draft depth that the flags give a draft model of this algorithm. @throws UsageError */
export function depthOf(options: ServeCommandOptions, algorithm: string): DepthWithNotes {
  if (options.policy !== undefined) return depthOfPolicy(options.policy, options);
  const choice = speculationOf(options);
  const { tier, warnings } = asUsageError(() =>
    fixedShape({ ...choice, algorithm, architecture: "" })
  );
  return {
    depth: { kind: "fixed", tier: choice.tree === "auto" ? undefined : tier },
    notes: warnings,
  };
}

/** The depth of `--policy`. Policies that SGLang does not have become a fixed number of steps. */
function depthOfPolicy(
  text: string,
  { numSteps }: ServeCommandOptions,
): DepthWithNotes {
  const { policy, options } = policyOf(text);
  const values = objectOf(options);
  const steps = numSteps ?? DEFAULT_NUM_STEPS;
  const fixed = (depth: number): Depth => ({ kind: "fixed", tier: chain(depth) });
  switch (policy) {
    case "off":
      return { depth: PLAIN, notes: [] };
    case "static":
      return { depth: fixed(Number(values["num_steps"] ?? steps)), notes: [] };
    case "ema": {
      const json = wholeConfig(values);
      const config = asUsageError(() => parseAdaptiveConfig(json));
      const start = numSteps ?? middleSteps(config);
      const depths = unionSteps(withInitialSteps(config, start));
      if (!depths.includes(start)) {
        throw new UsageError(
          `Cannot use "--num-steps ${start}": the adaptive config's steps are ${depths.join(", ")}`,
        );
      }
      return { depth: { kind: "adaptive", json, config, numSteps: start }, notes: [] };
    }
    case "throughput-aware":
      return throughputAware(values, numSteps);
  }
  const note = `--policy ${policy} has no equivalent there: every round drafts ${steps} steps`;
  return { depth: fixed(steps), notes: [note] };
}

/** The file that `strategy: throughput_aware` reads (SGLang's pull request 28045). */
function throughputAware(values: Json, numSteps: number | undefined): DepthWithNotes {
  const { steps, interval, window, margin } = THROUGHPUT_AWARE.check(values);
  const middle = steps[Math.floor(steps.length / 2)] ?? DEFAULT_NUM_STEPS;
  const json = {
    strategy: "throughput_aware",
    window_size: window,
    update_interval: interval,
    "1": { candidate_steps: steps },
  };
  const notes = margin === 1 ? [] : [`margin=${margin} of --policy has no equivalent there`];
  const start = numSteps !== undefined && steps.includes(numSteps) ? numSteps : middle;
  return { depth: { kind: "adaptive", json, config: undefined, numSteps: start }, notes };
}

/** Replaces `generation`, a name that only Eyrie knows, by the config that it stands for. */
function wholeConfig({ generation, ...rest }: Json): Json {
  const sized = Object.keys(rest).some((key) => key === "candidate_steps" || /^\d+$/.test(key));
  if (sized) return rest;
  return { ...rest, ...EMA_GENERATIONS[generation === "doc" ? "doc" : "main"] };
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? value as Json : {};
}
