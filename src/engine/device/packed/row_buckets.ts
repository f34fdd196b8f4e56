import { isChain, type TierShape } from "../../../speculate/round_shape.ts";
import { batchBuckets, type RoundOf } from "../programs.ts";

/** Row counts that packed rounds have programs for. */
const ROW_BUCKETS = [
  ...[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96],
  ...[128, 192, 256, 384, 512, 768, 1024, 1536, 2048],
];

/** A round of chains of which not all rows are verified. */
export interface PackedOf {
  /** Sequences that its programs are for, one of the batch buckets. */
  readonly batch: number;
  /** Draft levels. */
  readonly depth: number;
}

/**
 * Rows of the packed round that holds `rows` rows of all sequences; undefined where it would have no
 * fewer than the round that verifies all drafts.
 */
export function packedRows(rows: number, { batch, depth }: PackedOf): number | undefined {
  const bucket = ROW_BUCKETS.find((size) => size >= rows);
  return bucket !== undefined && bucket < batch * (depth + 1) ? bucket : undefined;
}

/**
 * All rounds of these tiers that verify a part of the drafts, for batches up to `most`.
 *
 * @param ranks whether the device may choose which.
 */
export function partialRounds(
  shapes: readonly TierShape[],
  most: number,
  ranks: boolean,
): RoundOf[] {
  const chains = shapes.filter((shape) => isChain(shape) && shape.depth > 0);
  return batchBuckets(most).flatMap((batch, i, buckets) => {
    const least = (buckets[i - 1] ?? 0) + 1;
    return chains.flatMap((shape) => {
      const of = { ...shape, batch };
      const packed = ROW_BUCKETS.filter((rows) => rows >= least && packedRows(rows, of) === rows);
      const by = (allocates: boolean) => packed.map((packed) => ({ ...of, packed, allocates }));
      return [...by(false), ...ranks ? [...by(true), { ...of, allocates: true }] : []];
    });
  });
}
