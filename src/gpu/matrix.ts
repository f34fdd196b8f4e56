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
  /** A processor plays the GPU: loads and barriers cost more than arithmetic. */
  readonly software: boolean;
  /** Invocations that share one output of a matmul. */
  readonly lanes: number;
  /** Groups of lanes in a matmul workgroup. */
  readonly groups: number;
  /** Output pairs a group of lanes makes. */
  readonly pairs: number;
  /** Most invocations of a row reduction (norm, choose), a power of two. */
  readonly rowLanes: number;
}

/**
 * A software adapter has no memory to coalesce for, and each load costs far more than arithmetic:
 * an invocation makes many outputs alone.
 *
 * @param invocations most of a workgroup; the default is what every adapter has.
 */
export function tuning(software: boolean, invocations = 256): Tuning {
  return software
    ? { software, lanes: 1, groups: 8, pairs: 8, rowLanes: 16 }
    : { software, lanes: 32, groups: 4, pairs: 2, rowLanes: invocations < 512 ? 256 : 512 };
}
