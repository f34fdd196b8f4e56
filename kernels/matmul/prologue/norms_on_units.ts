/** When a matmul of one row on matrix units norms the row itself. */
import type { Matrix } from "../../../src/gpu/matrix.ts";
import { isQuantized } from "../../../src/gpu/weight_format.ts";
import { addendBuffers, addendsOf } from "./prologue.ts";
import { MAX_READ, type NormUse } from "./norms_rows.ts";
import { NORM_BYTES } from "../matmul_stages.ts";
import { tensorShards } from "../tensor/common.ts";
import { fewTile } from "../tensor/few_tiles.ts";

/** Widest row that is normed so: a subgroup takes longer for 2,048 numbers than a norm dispatched before does. */
const WIDEST = 1024;

/** Storage buffers besides those of the epilogue and of what is added: of the matmul, the norm, and the scales. */
const BUFFERS = 6;

/**
 * Whether a matmul on matrix units is faster if it norms x itself, by `normedRows`: only one row, no quantized weights,
 * and no branch that is normed before it is added.
 */
export function normsOnUnits(
  matrix: Matrix,
  { rows, added, bound, tuning: { tensor, software } }: NormUse,
): boolean {
  const { format, cols, shards } = matrix;
  const branch = added !== undefined && "splitK" in added && added.branch !== undefined;
  const one = rows === 1 && !branch && cols <= WIDEST && !software && !isQuantized(format);
  if (!one || !tensor || !tensorShards(matrix, tensor)) return false;
  const { unit, limits } = tensor;
  const room = {
    maxComputeWorkgroupStorageSize: limits.maxComputeWorkgroupStorageSize - NORM_BYTES,
  };
  const reads = shards.map(({ rows: columns }) => {
    const tile = fewTile(unit, room, { rows, columns, range: cols, splitK: 1, resident: true });
    if (!tile) return Infinity;
    const workgroups = Math.ceil(columns / (tile.columns * unit.m));
    return workgroups * cols * (2 + addendsOf(added)) * 4;
  });
  return BUFFERS + bound + addendBuffers(added) <= limits.maxStorageBuffersPerShaderStage &&
    reads.every((read) => read <= MAX_READ);
}
