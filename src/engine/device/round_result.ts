import { logprobWords } from "../../../kernels/sample/logprobs.ts";
import {
  RESULT_CHOICES,
  resultDrafts,
  resultVerified,
  resultWords,
} from "../../model/device_layout.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import { readLogprobs, type TokenLogprobs } from "./choice/logprobs.ts";
import type { Sequence } from "./sequence.ts";
import type { RunResult } from "./submit/submit.ts";

/** What a round did for one sequence. */
export interface SequenceResult {
  /** Drafts accepted. */
  readonly accepted: number;
  /**
   * Tokens emitted: the accepted drafts and the bonus. NOT_A_TOKEN where logits were broken; none
   * once an earlier round emitted a token that ends the sequence, or where it has no slot any more.
   */
  readonly ids: readonly number[];
  /** The drafts that were verified. */
  readonly drafts: readonly number[];
  /**
   * The highest probability of the draft at each position that it drafted, verified or not; absent
   * where it does not tell.
   */
  readonly confidences?: readonly number[];
  /** Log-probabilities of each of `ids`, if they were requested. */
  readonly logprobs?: readonly TokenLogprobs[] | undefined;
}

/** One round. Times are device times, 0 unless the runner profiles. */
export interface RoundResult {
  readonly sequences: readonly SequenceResult[];
  readonly draftMs: number;
  readonly verifyMs: number;
  readonly extendMs: number;
}

/** What the host knows of a round. */
export interface RoundLayout {
  readonly shape: DraftShape;
  /** Drafts verified of each sequence, if the results do not contain the numbers; absent: all drafts. */
  readonly depths: readonly number[] | undefined;
  /** Whether results contain those numbers and the draft's confidences, see `resultWords`. */
  readonly withConfidences: boolean;
  /** Whether the device's drafter stored its keys and values of what was accepted. */
  readonly extended: boolean;
  /** Number of tokens of each row whose log-probabilities are reported; undefined: none were requested. */
  readonly logprobs?: number | undefined;
}

/** Reads what a round did, [batch, resultWords(shape.rows, withConfidences)], and adds it to the sequences. */
export function roundResult(
  sequences: readonly Sequence[],
  {
    shape: { rows, depth },
    depths,
    withConfidences,
    extended,
    logprobs: likeliest,
  }: RoundLayout,
  { words, extra, ms }: RunResult,
): RoundResult {
  const size = resultWords(rows, withConfidences);
  const results = sequences.map((sequence, b): SequenceResult => {
    const result = words.subarray(b * size, (b + 1) * size);
    const emitted = sequence.slot === undefined ? 0 : result[0] ?? 0;
    if (emitted === 0) return { accepted: 0, ids: [], drafts: [] };
    const ids = [...result.subarray(RESULT_CHOICES, RESULT_CHOICES + emitted)];
    const first = resultDrafts(rows);
    const verified = withConfidences ? result[resultVerified(rows)] : depths?.[b];
    const drafted = Math.min(verified ?? rows - 1, rows - 1);
    const drafts = [...result.subarray(first, first + drafted)];
    const before = sequence.stored;
    sequence.ids.push(...ids);
    sequence.stored = sequence.ids.length - 1;
    // A lag that was not caught up stays.
    if (extended && sequence.draftStored === before) sequence.draftStored = sequence.stored;
    const own = extra.subarray(b * (depth + 1) * logprobWords(likeliest ?? 0));
    return {
      accepted: emitted - 1,
      ids,
      drafts,
      logprobs: readLogprobs(own, ids, likeliest),
      ...withConfidences ? { confidences: confidencesOf(result, rows) } : {},
    };
  });
  const [draftMs = 0, verifyMs = 0, extendMs = 0] = ms;
  return { sequences: results, draftMs, verifyMs, extendMs };
}

function confidencesOf(result: Uint32Array, rows: number): number[] {
  const from = resultVerified(rows) + 1;
  return [...new Float32Array(result.slice(from, from + rows - 1).buffer)];
}
