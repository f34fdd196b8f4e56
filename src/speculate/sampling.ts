/**
 * How a token is chosen from a row of logits. Applied in this order: logit bias, repetition, frequency
 * and presence penalty, temperature, top-k, top-p, min-p, then the largest
 * `logit/temperature + Gumbel(seed, position, token)`.
 */
export interface Sampling {
  /** 0 = greedy: the largest logit, the lowest id on a tie. */
  readonly temperature: number;
  /** Keep the k largest logits (all ties with the k-th stay); 0 = off. */
  readonly topK: number;
  /** Keep the most probable tokens until their sum reaches top_p; 1 = off. */
  readonly topP: number;
  /** Keep tokens with at least min_p times the largest probability; 0 = off. */
  readonly minP: number;
  /** Key of the noise, an unsigned 32-bit integer: same seed, same text. */
  readonly seed: number;
  /**
   * Tokens of prompt and output: a logit above 0 is divided by it, any other multiplied (Hugging Face
   * `repetition_penalty`); 1 = off, more than 0.
   */
  readonly repetitionPenalty: number;
  /** Subtracted once for each time that the token is in the output (OpenAI); 0 = off. */
  readonly frequencyPenalty: number;
  /** Subtracted where the token is in the output (OpenAI); 0 = off. */
  readonly presencePenalty: number;
  /** Added to the logits of these token ids. */
  readonly logitBias: Readonly<Record<number, number>>;
}

export const GREEDY: Sampling = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  seed: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logitBias: {},
};

/** Whether it changes logits before the temperature does. */
export function penalizes(
  { repetitionPenalty, frequencyPenalty, presencePenalty, logitBias }: Sampling,
): boolean {
  const off = repetitionPenalty === 1 && frequencyPenalty === 0 && presencePenalty === 0;
  return !off || Object.keys(logitBias).length > 0;
}
