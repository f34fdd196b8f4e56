import type { AdaptiveSlot } from "./adaptive_config.ts";

/** Which bracket a batch belongs to (SGLang's adaptive step router). An `AdaptiveConfig` is one. */
export interface Routing {
  /** Ascending by batch size. */
  readonly slots: readonly Pick<AdaptiveSlot, "batchSize" | "candidateSteps">[];
  /** Batch sizes that programs exist for, to which a batch is padded (there: CUDA graphs). */
  readonly buckets?: readonly number[] | undefined;
}

/** The last bracket at or below the padded batch; the first one for batches below all. */
export function slotIndex({ slots, buckets }: Routing, batchSize: number): number {
  const padded = padTo(buckets ?? [], batchSize);
  return Math.max(0, slots.findLastIndex((slot) => slot.batchSize <= padded));
}

/** The smallest bucket that holds the batch; a batch larger than all stays as it is. */
function padTo(buckets: readonly number[], batchSize: number): number {
  const holding = buckets.filter((bucket) => bucket >= batchSize);
  return holding.length > 0 ? Math.min(...holding) : batchSize;
}
