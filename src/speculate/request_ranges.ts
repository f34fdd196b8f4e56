/** What a number may be. */
export interface NumberRange {
  readonly min: number;
  readonly max: number;
  /** `min` itself is not allowed. */
  readonly above?: true;
}

/**
 * What the numbers of a request may be, wherever they come from: the command line's option tables, the
 * engine's door and generation_config.json go by this list.
 */
export const REQUEST_RANGES = {
  temperature: { min: 0, max: 100 },
  topK: { min: 0, max: 1_000_000 },
  topP: { min: 0, max: 1, above: true },
  minP: { min: 0, max: 1 },
  seed: { min: 0, max: 4_294_967_295 },
  repetitionPenalty: { min: 0, max: 10, above: true },
  frequencyPenalty: { min: -2, max: 2 },
  presencePenalty: { min: -2, max: 2 },
  /** Of one token; OpenAI's. */
  logitBias: { min: -100, max: 100 },
  logprobs: { min: 0, max: 20 },
} as const;

/** False for what is no number, too. */
export function inRange(value: unknown, { min, max, above }: NumberRange): value is number {
  return typeof value === "number" && value <= max && (above ? value > min : value >= min);
}

/** `0 to 100`, `more than 0 and at most 1`. */
export function rangeText({ min, max, above }: NumberRange): string {
  return above ? `more than ${min} and at most ${max}` : `${min} to ${max}`;
}
