/** Where a matmul of one row on matrix units norms it itself. None of it touches a bit of the result. */
import type { Matrix, TensorLimits, TensorMatrices } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { heldFits } from "./matmul_tensor_held.ts";
import type { FewTile } from "./matmul_tensor_few.ts";
import { BINDINGS, tensorShards } from "./matmul_tensor.ts";

/** The fastest of Qwen3-0.6B's qkv and gate-up on an H200, then what every range divides into. */
const CANDIDATES: readonly FewTile[] = [
  { columns: 1, stage: 128, ahead: 2 },
  { columns: 1, stage: 32, ahead: 1 },
];

/**
 * Most bytes that all workgroups together read to norm the row. On an H200 a dispatch costs about 2.5 us, in which its
 * caches give this much beside the weights.
 */
const MOST_READ = 12 * 2 ** 20;

/** The tile for a row of `range` columns in workgroup memory; undefined where that has no room. */
export function heldTile(
  unit: MatrixUnit,
  limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  range: number,
): FewTile | undefined {
  return CANDIDATES.find((tile) => heldFits(unit, tile, { range, limits }));
}

/** Whether a matmul of one row on matrix units had better norm it itself than have it normed before. */
export function normsOnUnits(
  matrix: Matrix,
  { rows, addends, bound, tensor }: {
    readonly rows: number;
    /** Ranges of k whose sums are added to x first. */
    readonly addends: number;
    /** Storage buffers that the epilogue binds. */
    readonly bound: number;
    readonly tensor: TensorMatrices;
  },
): boolean {
  const { unit, limits } = tensor;
  if (rows !== 1 || tensorShards(matrix, tensor) === undefined) return false;
  // Of a norm: its weights, sums and the stream; scales of other inputs, made the largest or lowered.
  const buffers = BINDINGS.length + 1 + bound + (addends > 0 ? 3 : 1) + 1;
  const workgroups = Math.ceil(matrix.rows / unit.n);
  return buffers <= limits.maxStorageBuffersPerShaderStage &&
    workgroups * matrix.cols * (1 + addends) * 4 <= MOST_READ &&
    heldTile(unit, limits, matrix.cols) !== undefined;
}
