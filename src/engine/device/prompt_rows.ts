/** Where the rows of prompts' chunks are in a forward. */
import { rowBucket } from "./buckets.ts";
import type { EngineSizes } from "./buffers.ts";

/**
 * Adjacent rows of one slot in a forward of several chunks; each chunk is padded to whole runs. A workgroup of
 * attention reads keys once for its rows, up to 16 rows for groups of four heads. Other lengths were not timed.
 */
export const PROMPT_RUN = 32;

/** The same on software adapters, where every row of padding costs as much as one of a prompt. */
export const SOFTWARE_PROMPT_RUN = 8;

/** How the rows of a forward of prompts lie. */
export interface PromptRows {
  /** First row of each chunk. */
  readonly firsts: readonly number[];
  /** Rows of the forward, padding included: a bucket. */
  readonly count: number;
  /** Adjacent rows of one slot: all rows if there is only one chunk. */
  readonly perSlot: number;
}

/** Rows of a run where a forward has several chunks. */
export function promptRun({ promptRun = PROMPT_RUN }: Pick<EngineSizes, "promptRun">): number {
  return promptRun;
}

/**
 * Places the rows of chunks with these numbers of tokens: a single chunk has all rows, each of several has whole runs.
 *
 * @param tokens of each chunk, at least one.
 */
export function promptRows(tokens: readonly number[], run: number): PromptRows {
  const [only = 0] = tokens;
  if (tokens.length === 1) {
    const count = rowBucket(only);
    return { firsts: [0], count, perSlot: count };
  }
  let count = 0;
  const firsts = tokens.map((each) => {
    const first = count;
    count += wholeRuns(each, run);
    return first;
  });
  return { firsts, count: rowBucket(count), perSlot: run };
}

/** Rows of a chunk in a forward of several chunks, padding included. */
export function wholeRuns(tokens: number, run: number): number {
  return Math.ceil(tokens / run) * run;
}
