/** Numbers of sequences and of rows that programs are made for. */

/** Row counts that programs of prompts are made for; a forward takes the smallest that holds its rows. */
const ROW_BUCKETS: readonly number[] = [8, 16, 32, 64, 128, 256, 384, 512, 768, 1024];
/** Step of the counts beyond these. */
const WIDE_ROWS = 512;

/** Batch sizes that round programs are made for; a batch between two of them is padded. */
const BATCH_BUCKETS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/** The batch sizes an engine for `most` sequences makes programs for. */
export function batchBuckets(most: number): number[] {
  return [...BATCH_BUCKETS.filter((size) => size < most), most];
}

export function batchBucket(batch: number, most: number): number {
  return batchBuckets(most).find((size) => size >= batch) ?? most;
}

/** Row counts that programs of prompts are made for below `most`, and `most`. */
export function rowBuckets(most: number): number[] {
  const wide = (ROW_BUCKETS.at(-1) ?? 0) + WIDE_ROWS;
  const beyond = Array.from(
    { length: Math.max(0, Math.ceil((most - wide) / WIDE_ROWS)) },
    (_, i) => wide + i * WIDE_ROWS,
  );
  return [...ROW_BUCKETS.filter((rows) => rows < most), ...beyond, most];
}

export function rowBucket(rows: number): number {
  return ROW_BUCKETS.find((size) => size >= rows) ?? Math.ceil(rows / WIDE_ROWS) * WIDE_ROWS;
}
