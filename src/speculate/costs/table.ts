/**
 * What rounds cost on one adapter with one pair of models, in milliseconds: medians that `eyrie
 * profile` measured and made monotone. Plain data, the same as in its JSON file. Policies read it
 * through lookup.ts.
 */
export interface CostTable {
  /** Format of the file; another one is refused. */
  readonly format: typeof COST_FORMAT;
  /** Adapter and driver, or where published numbers are from. */
  readonly adapter: string;
  readonly model: string;
  /** Undefined without a draft model. */
  readonly draft: string | undefined;
  /** Batch sizes that programs are made for, rising: a round is padded to the next. */
  readonly buckets: readonly number[];
  /** One draft level after the first token, which `extend` gives: batch and milliseconds, batch rising. */
  readonly level: readonly Point[];
  /**
   * The verify forward, choice and acceptance: rows (of the padded batch) and milliseconds, rows
   * rising, at contexts too short to matter.
   */
  readonly verify: readonly Point[];
  /**
   * What keys and values add to the verify forward: milliseconds for each token stored, over all
   * sequences of the round.
   */
  readonly perCell: number;
  /**
   * What attention adds to that where arithmetic counts and not memory alone: milliseconds for each
   * token stored and each verify row of its sequence. Absent: 0.
   */
  readonly perRowCell?: number;
  /** The draft-extend forward, which stores the accepted tokens' keys and values and gives the first draft: rows. */
  readonly extend: readonly Point[];
  /** The draft's prefill after rounds without it: tokens missed over all sequences. */
  readonly catchUp: readonly Point[];
  /** The target's and draft's prefill of a prompt: tokens. */
  readonly prefill: readonly Point[];
  /** The host's work and waiting for one group of rounds. */
  readonly host: number;
  /**
   * What a packed round takes beyond its levels and rows: choosing its drafts, and the host's part of
   * that. Absent: 0.
   */
  readonly packing?: number;
  /** Largest part by which the table differs from a median that it was made of. */
  readonly fitError: number;
  /** Corrections from rounds that ran since (refine.ts); absent: none yet. */
  readonly refined?: Refined;
}

/** Factors on what the lists say. */
export interface Refined {
  /** Factor of all rounds: the machine is slower or faster than when it was measured. */
  readonly all: number;
  /** For rounds of one kind, in addition to `all`. */
  readonly rounds: readonly RoundRatio[];
  /** Factor of the draft's prefill. */
  readonly catchUp: number;
  /** Factor of prompts; absent: 1. */
  readonly prefill?: number;
}

/** A factor on rounds of one padded batch and one number of draft steps. */
export interface RoundRatio {
  readonly batch: number;
  readonly steps: number;
  readonly ratio: number;
}

/** A count, and milliseconds at that count. */
export interface Point {
  readonly at: number;
  readonly ms: number;
}

export const COST_FORMAT = "eyrie-costs-1";
