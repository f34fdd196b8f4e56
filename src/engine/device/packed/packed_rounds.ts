import { packedRows, ROW_BUCKETS } from "../../../speculate/costs/cost_buckets.ts";
import { type DraftShape, isChain } from "../../../speculate/round_shape.ts";
import { batchBuckets } from "../buckets.ts";
import type { RoundSpec } from "../round_plans.ts";

/**
 * All rounds of these tiers that verify a part of the drafts, for batches up to `most`.
 *
 * @param ranks whether the device may choose which.
 */
export function partialRounds(
  shapes: readonly DraftShape[],
  most: number,
  ranks: boolean,
): RoundSpec[] {
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
