import type { Sampling } from "../../speculate/sampling.ts";
import type { GenerateOptions } from "../options/options.ts";
import type { Engine } from "./engine.ts";

/** What a request is sampled with besides its seed. */
export type SamplingChoice = Omit<Sampling, "seed">;

/** Where neither a flag nor generation_config.json says. */
const FALLBACK: SamplingChoice = { temperature: 0.7, topK: 0, topP: 1, minP: 0 };

/** Tokens of an answer, where nobody says, that no person waits for: one that never ends must end. */
export const MAX_TOKENS = 512;

type SamplingFlags = Pick<GenerateOptions, keyof SamplingChoice | "generationConfig">;

/** The flags, then generation_config.json unless it is not wanted, then the fallback. */
export function samplingChoice(
  options: SamplingFlags,
  { generation }: Pick<Engine, "generation">,
): SamplingChoice {
  const defaults = options.generationConfig === "none" ? {} : generation;
  const choose = (key: keyof SamplingChoice) => options[key] ?? defaults[key] ?? FALLBACK[key];
  return {
    temperature: choose("temperature"),
    topK: choose("topK"),
    topP: choose("topP"),
    minP: choose("minP"),
  };
}

/** What generation_config.json asks for and the engine does not do. */
export function samplingWarnings(
  { generationConfig }: Pick<GenerateOptions, "generationConfig">,
  { name, generation: { repetitionPenalty = 1 } }: Pick<Engine, "name" | "generation">,
): string[] {
  if (generationConfig === "none" || repetitionPenalty === 1) return [];
  return [
    `generation_config.json of "${name}" has repetition_penalty ${repetitionPenalty}, ` +
    "which is not applied",
  ];
}
