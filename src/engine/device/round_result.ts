import { RESULT_CHOICES, RESULT_DRAFTS, RESULT_WORDS } from "../../model/plan/rows_layout.ts";
import type { Sequence } from "./sequence.ts";
import type { Ran } from "./submit.ts";

/** What one lane of a round did. */
export interface LaneResult {
  /** Drafts accepted. */
  readonly accepted: number;
  /**
   * Tokens emitted: the accepted drafts and the bonus. NOT_A_TOKEN where logits were broken; none
   * once an earlier round emitted a token that ends the sequence.
   */
  readonly ids: readonly number[];
  readonly drafts: readonly number[];
}

/** One round. Times are device times, 0 unless the core profiles. */
export interface RoundResult {
  readonly lanes: readonly LaneResult[];
  readonly draftMs: number;
  readonly verifyMs: number;
  readonly extendMs: number;
}

/** Reads what a round did, [batch, RESULT_WORDS], and adds it to the sequences. */
export function roundResult(
  sequences: readonly Sequence[],
  numSteps: number,
  { words, ms }: Ran,
): RoundResult {
  const lanes = sequences.map((sequence, lane): LaneResult => {
    const result = words.subarray(lane * RESULT_WORDS, (lane + 1) * RESULT_WORDS);
    const emitted = result[0] ?? 0;
    if (emitted === 0) return { accepted: 0, ids: [], drafts: [] };
    const ids = [...result.subarray(RESULT_CHOICES, RESULT_CHOICES + emitted)];
    const drafts = [...result.subarray(RESULT_DRAFTS, RESULT_DRAFTS + numSteps)];
    const before = sequence.stored;
    sequence.ids.push(...ids);
    sequence.stored = sequence.ids.length - 1;
    // A lag that was not caught up stays.
    if (numSteps > 0 && sequence.draftStored === before) sequence.draftStored = sequence.stored;
    return { accepted: emitted - 1, ids, drafts };
  });
  const [draftMs = 0, verifyMs = 0, extendMs = 0] = ms;
  return { lanes, draftMs, verifyMs, extendMs };
}
