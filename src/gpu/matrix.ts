import type { Operand } from "./kernel.ts";

/** How a matrix lies in GPU memory; each has its `weights_*.wgsl`. */
export type WeightFormat = "bf16" | "f16" | "f32";

/** Bytes of one element. */
export const WEIGHT_BYTES: Readonly<Record<WeightFormat, number>> = { bf16: 2, f16: 2, f32: 4 };

/** Consecutive rows of a matrix in one binding. */
export interface Shard {
  readonly operand: Operand;
  /** First output column this shard makes (first row of the matrix where rows are not paired). */
  readonly first: number;
  /** Rows of the shard, even. */
  readonly rows: number;
}

/** A weight matrix [rows, cols], row-major, cut by rows where a binding limit needs it. */
export interface Matrix {
  readonly format: WeightFormat;
  readonly rows: number;
  readonly cols: number;
  readonly shards: readonly Shard[];
}

/**
 * Launch shapes of one adapter. `lanes` decides the order of a matmul's sum, so it is one number
 * for every row count.
 */
export interface Tuning {
  /** Invocations that share one output of a matmul. */
  readonly lanes: number;
  /** Output pairs a matmul workgroup makes. */
  readonly groups: number;
  /** Invocations of a row reduction (norm, choose). */
  readonly rowLanes: number;
}

/** A software adapter has no memory to coalesce for: an invocation per output, no reduction. */
export function tuning(software: boolean): Tuning {
  return software
    ? { lanes: 1, groups: 32, rowLanes: 16 }
    : { lanes: 32, groups: 4, rowLanes: 256 };
}
