import { DEFAULT_PRESET, presetJson, usage } from "../../engine/schedule/presets.ts";
import { DEFAULT_NUM_STEPS, resolveAdaptive } from "../../speculate/adaptive_arguments.ts";
import { type AdaptiveConfig, parseAdaptiveConfig } from "../../speculate/adaptive_config.ts";
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

/** What a draft model of this algorithm is made to draft. @throws UsageError */
export function depthOf(options: ServeCommandOptions, algorithm: string): DepthWithNotes {
  if (options.policy !== undefined) return depthOfPolicy(options.policy, options, algorithm);
  const given = options.preset ?? options.adaptiveConfig ?? DEFAULT_PRESET;
  const choice = speculationOf(options);
  return resolved({ ...choice, algorithm, architecture: "" }, () => objectOf(presetJson(given)));
}

/** @param json the file of the config. */
function resolved(args: Parameters<typeof resolveAdaptive>[0], json: () => Json): DepthWithNotes {
  const found = usage(() => resolveAdaptive(args));
  const { warnings: notes, tier } = found;
  if (found.policy === "fixed") {
    return { depth: { kind: "fixed", tier: args.tree === "auto" ? undefined : tier }, notes };
  }
  const { config } = found;
  return { depth: { kind: "adaptive", json: json(), config, numSteps: tier.depth }, notes };
}

/** Policies that SGLang has too; for others every round drafts alike. */
function depthOfPolicy(
  text: string,
  { numSteps }: ServeCommandOptions,
  algorithm: string,
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
      const config = usage(() => parseAdaptiveConfig(json));
      const args = { adaptive: true, config, configGiven: true, algorithm, architecture: "" };
      const none = { eagleTopk: undefined, numDraftTokens: undefined };
      return resolved({ ...args, ...none, numSteps }, () => json);
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

/** A generation's name stands for its file here alone. */
function wholeConfig({ generation, ...rest }: Json): Json {
  const sized = Object.keys(rest).some((key) => key === "candidate_steps" || /^\d+$/.test(key));
  if (sized) return rest;
  return { ...rest, ...EMA_GENERATIONS[generation === "doc" ? "doc" : "main"] };
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? value as Json : {};
}
