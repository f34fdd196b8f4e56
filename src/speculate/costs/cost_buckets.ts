/** Row counts that packed rounds have programs for. */
export const ROW_BUCKETS: readonly number[] = [
  ...[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96],
  ...[128, 192, 256, 384, 512, 768, 1024, 1536, 2048],
];

/** The bucket of this number of rows; beyond the largest bucket the number itself. */
export function paddedRows(rows: number): number {
  return ROW_BUCKETS.find((size) => size >= rows) ?? rows;
}

/** A round of chains of which not all rows are verified. */
export interface PackedOf {
  /** Sequences that its programs are for, one of the batch buckets. */
  readonly batch: number;
  /** Draft levels. */
  readonly depth: number;
}

/** A round of chains, of which not all drafts may be verified. */
export interface RowsOf extends PackedOf {
  /** Sequences. */
  readonly sequences: number;
  /** Drafts verified over all sequences. */
  readonly drafts: number;
}

/** Verify rows of the programs of a round: those of a packed round, or the batch's times depth + 1. */
export function programRows({ sequences, drafts, batch, depth }: RowsOf): number {
  const packed = drafts < sequences * depth
    ? packedRows(sequences + Math.max(0, drafts), { batch, depth })
    : undefined;
  return packed ?? batch * (depth + 1);
}

/**
 * Rows of the packed round that holds `rows` rows of all sequences; undefined where it would have no
 * fewer than the round that verifies all drafts.
 */
export function packedRows(rows: number, { batch, depth }: PackedOf): number | undefined {
  const bucket = ROW_BUCKETS.find((size) => size >= rows);
  return bucket !== undefined && bucket < batch * (depth + 1) ? bucket : undefined;
}
