import { FALLBACK, type SamplingChoice } from "../../engine/sampling.ts";
import type { GenerateOptions } from "../options/options.ts";
import type { EngineInfo } from "../../engine/engine.ts";

/** Default limit of answers that no person waits for: an answer that would never end is cut. */
export const MAX_TOKENS = 512;

type SamplingFlags = Pick<GenerateOptions, keyof SamplingChoice | "generationConfig">;

/** The flags, then generation_config.json unless it is not wanted, then the fallback. */
export function samplingChoice(
  options: SamplingFlags,
  { generation }: Pick<EngineInfo, "generation">,
): SamplingChoice {
  const defaults: Partial<SamplingChoice> = options.generationConfig === "none" ? {} : generation;
  const keys = Object.keys(FALLBACK) as (keyof SamplingChoice)[];
  const entries = keys.map((key) => [key, options[key] ?? defaults[key] ?? FALLBACK[key]]);
  return Object.fromEntries(entries) as SamplingChoice;
}
