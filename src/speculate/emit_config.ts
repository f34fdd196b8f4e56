/** The steps that won at one batch size. */
export interface Winner {
  readonly batchSize: number;
  /** One of them holds the bracket at it; of several, acceptance chooses while it runs. */
  readonly steps: readonly number[];
}

/** A batch-size entry as SGLang's file has it. */
export interface SlotEntry {
  readonly candidate_steps: readonly number[];
  readonly up_hysteresis: number;
  readonly down_hysteresis: number;
  readonly ceiling_coeff: number;
}

/**
 * What `--speculative-adaptive-config` reads, here and in SGLang: each batch size, and all up to
 * the next, runs the steps that won at it.
 */
export function emitConfig(winners: readonly Winner[]): Readonly<Record<string, SlotEntry>> {
  return Object.fromEntries(winners.map(({ batchSize, steps }) => [String(batchSize), {
    candidate_steps: [...new Set(steps)].toSorted((a, b) => a - b),
    up_hysteresis: 0,
    down_hysteresis: -0.25,
    ceiling_coeff: 0,
  }]));
}
