import { REQUEST_RANGES } from "../../../speculate/request_ranges.ts";
import { logprobWords } from "../../../../kernels/sample/logprobs.ts";
import { NOT_A_TOKEN } from "../../../../kernels/lib/rows.ts";

/** A token and its log-probability, natural. */
export interface TokenLogprob {
  readonly id: number;
  readonly logprob: number;
}

/**
 * An output token's log-probability before bias, penalties, masks and temperature, and those of the likeliest tokens in
 * its place, in descending order.
 */
export interface TokenLogprobs extends TokenLogprob {
  readonly top: readonly TokenLogprob[];
}

/** Most likely tokens that may be asked for. */
export const MAX_LOGPROBS: number = REQUEST_RANGES.logprobs.max;

/** Numbers of log-probabilities per row: programs are made for each of these. */
const COUNTS = [0, 1, 5, MAX_LOGPROBS];

/** The largest number that any of them asks for; undefined if none asks. */
export function maxLogprobs(
  asked: readonly { readonly logprobs?: number | undefined }[],
): number | undefined {
  const wanted = asked.flatMap(({ logprobs }) => logprobs ?? []);
  return wanted.length > 0 ? Math.max(...wanted) : undefined;
}

/** The number that is computed for the largest of `wanted`; undefined if no log-probabilities are wanted. */
export function logprobCount(wanted: number | undefined): number | undefined {
  return wanted === undefined ? undefined : COUNTS.find((count) => count >= wanted);
}

/**
 * Reads what sample/logprobs.wgsl left of a sequence; undefined where it was not asked for.
 *
 * @param words [ids or more, logprobWords(most)]
 */
export function readLogprobs(
  words: Uint32Array,
  ids: readonly number[],
  most: number | undefined,
): TokenLogprobs[] | undefined {
  if (most === undefined) return undefined;
  const floats = new Float32Array(words.buffer, words.byteOffset, words.length);
  // A compiler may negate the sum of negated terms, so that a token that is certain has -0 in some programs.
  const logprobAt = (at: number) => (floats[at] ?? NaN) + 0;
  const size = logprobWords(most);
  return ids.map((id, i) => {
    const at = i * size;
    const top = Array.from({ length: most }, (_, n): TokenLogprob => (
      { id: words[at + 1 + 2 * n] ?? NOT_A_TOKEN, logprob: logprobAt(at + 2 + 2 * n) }
    ));
    return { id, logprob: logprobAt(at), top: top.filter(({ id }) => id !== NOT_A_TOKEN) };
  });
}
