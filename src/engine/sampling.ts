import { GREEDY, type Sampling } from "../speculate/sampling.ts";

/** What a request is sampled with besides its seed. */
export type SamplingChoice = Omit<Sampling, "seed">;

const { seed: _, ...OFF } = GREEDY;

/** Where neither the caller nor generation_config.json says. */
export const FALLBACK: SamplingChoice = { ...OFF, temperature: 0.7 };

/** Uniform over the seeds that a request may have. */
export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

/** SGLang's `_SAMPLING_EPS`: below it a temperature is greedy; 1/temperature would overflow. */
const GREEDY_BELOW = 1e-6;

/** Sampling parameters; a missing seed is drawn. */
export function samplingOf(
  values: Omit<Sampling, "seed"> & { readonly seed: number | undefined },
  drawSeed: () => number,
): Sampling {
  const { topK, topP, minP, logitBias } = values;
  const { repetitionPenalty, frequencyPenalty, presencePenalty } = values;
  const temperature = values.temperature < GREEDY_BELOW ? 0 : values.temperature;
  const seed = values.seed ?? (temperature === 0 ? 0 : drawSeed());
  return {
    temperature,
    topK,
    topP,
    minP,
    seed,
    repetitionPenalty,
    frequencyPenalty,
    presencePenalty,
    logitBias,
  };
}
