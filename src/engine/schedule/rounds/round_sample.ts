import type { RoundResult } from "../../device/round_result.ts";

/** One finished round, for statistics. */
export interface RoundSample extends Omit<RoundResult, "sequences"> {
  /** Depth of its shape. */
  readonly numSteps: number;
  /** Sequences that it returned tokens for. */
  readonly batch: number;
  /** Which they are: 0 for the first that was submitted. */
  readonly requests: readonly number[];
  /** Drafts verified for each of them, and how many of these were accepted. */
  readonly drafts: readonly number[];
  readonly accepted: readonly number[];
  /** Rounds that were submitted at once, this one among them. */
  readonly together: number;
  /** Wall time: its device time, and an equal part of what its group took beyond device times. */
  readonly ms: number;
  /** When it ended, by the scheduler's clock. */
  readonly at: number;
}
