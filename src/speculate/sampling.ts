/**
 * How a token is chosen from a row of logits. Applied in this order: temperature, top-k, top-p,
 * min-p, then the largest `logit/temperature + Gumbel(seed, position, token)`.
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
}

export const GREEDY: Sampling = { temperature: 0, topK: 0, topP: 1, minP: 0, seed: 0 };
