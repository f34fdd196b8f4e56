import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix, Tuning } from "../../src/gpu/matrix.ts";
import { type Epilogue, matmul } from "./matmul.ts";
import { columnWorkgroups, matmulShape } from "./matmul_shape.ts";

/** What the number of peaks depends on beside the matrix. */
interface Use {
  /** Of x. */
  readonly rows: number;
  readonly tuning: Tuning;
}

/**
 * Whether a matmul can leave peaks instead of its outputs: where lanes are added, all columns of a
 * workgroup at once. Software adapters have few lanes to look through the outputs.
 */
export function canLeavePeaks({ lanes }: Matrix, { software, pairs }: Tuning): boolean {
  return !software && lanes > 1 && pairs === 2;
}

/** Peaks that each row has: one of every part of the columns, two pairs of a workgroup's groups. */
export function matmulPeakCount(matrix: Matrix, use: Use): number {
  return peaksBefore(matrix, use, matrix.shards.length);
}

/** Words that the peaks take of any number of rows up to `rows`. */
export function matmulPeakWords(matrix: Matrix, { rows: most, tuning }: Use): number {
  const counts = Array.from({ length: most }, (_, i) => i + 1);
  return Math.max(...counts.map((rows) => 2 * rows * matmulPeakCount(matrix, { rows, tuning })));
}

/**
 * Records the peaks of the columns of x W^T, of each row over the first `vocab` columns: a dispatch a
 * shard. See `canLeavePeaks`.
 */
export function matmulPeaks(
  { matrix, x, peaks }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** (key, token) u32, [rows, matmulPeakCount, 2] */
    readonly peaks: Operand;
  },
  shape: Use & { readonly vocab: number; readonly label: string },
): Dispatch[] {
  const { vocab, ...use } = shape;
  const count = matmulPeakCount(matrix, use);
  return matrix.shards.flatMap((shard, i) => {
    const finish = finishPeaks(matrix, { vocab, count, first: peaksBefore(matrix, use, i) });
    return matmul({ matrix: { ...matrix, shards: [shard] }, x, out: peaks }, { ...use, finish });
  });
}

/** Leaves `count` peaks a row, those of this shard from `first` on. */
export function finishPeaks(
  { rows }: Matrix,
  { vocab, count, first }: {
    readonly vocab: number;
    readonly count: number;
    readonly first: number;
  },
): Epilogue {
  return {
    name: "peaks",
    slots: { epilogue: "matmul/epilogue/argmax", out: "matmul/out_argmax" },
    buffers: {},
    constants: { VOCAB: vocab, FIRST_PEAK: first },
    outShare: count / rows,
    moved: 2 * count / rows,
  };
}

/** Peaks of a row that the first `shards` shards make. */
function peaksBefore(matrix: Matrix, { rows, tuning }: Use, shards: number): number {
  const launch = matmulShape(matrix, { rows, splits: 1, tuning });
  return matrix.shards.slice(0, shards)
    .reduce((sum, shard) => sum + columnWorkgroups(shard, launch) * launch.pairs / 2, 0);
}
