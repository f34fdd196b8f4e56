import { bytesOf, type Dispatch, dispatch, type Operand, type Work } from "../../src/gpu/kernel.ts";
import type { Matrix, Shard, Tuning } from "../../src/gpu/matrix.ts";
import { type Epilogue, type Finish, matmulKernel, PLAIN } from "./matmul_kernels.ts";
import { columnWorkgroups, matmulShape } from "./matmul_shape.ts";

export { finishCap } from "./matmul_kernels.ts";
export type { Epilogue, Finish };

/** Weights and x in, what is made of y out; "add" reads out before. */
function matmulWork({ cols }: Matrix, shard: Shard, rows: number, { moved }: Epilogue): Work {
  const outputs = shard.rows * moved;
  return {
    bytes: bytesOf(shard.operand) + (shard.scales ? bytesOf(shard.scales) : 0) +
      4 * rows * (cols + outputs),
    flops: 2 * rows * cols * shard.rows,
  };
}

/**
 * Records `out = finish(x W^T)` for `rows` rows: a dispatch a shard.
 *
 * x is [rows, cols]; out is [rows, W.rows], or [rows, W.rows / 2] for a gated one. With `splits`
 * above 1, out is [splits, rows, W.rows], the sums over equal ranges of k.
 */
export function matmul(
  buffers: { readonly matrix: Matrix; readonly x: Operand; readonly out: Operand },
  shape: {
    readonly rows: number;
    readonly finish: Finish | Epilogue;
    /** See `splitsOf`; 1 unless finish is "store". */
    readonly splits?: number;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  const { matrix, x, out } = buffers;
  const { rows, splits = 1, tuning, label } = shape;
  const finish = typeof shape.finish === "string" ? PLAIN[shape.finish] : shape.finish;
  const launch = matmulShape(matrix, { rows, splits, tuning });
  const { format, cols, lanes } = matrix;
  const { groups } = launch;
  const code = matmulKernel(launch, { format, finish, lanes });
  return matrix.shards.map((shard) =>
    dispatch(code, {
      buffers: {
        weights: shard.operand,
        // Its size tells the kernel how many rows there are.
        x: { ...x, size: 4 * rows * cols },
        out,
        ...finish.buffers,
        // Kernels of other formats bind no scales.
        scales: shard.scales ?? shard.operand,
      },
      constants: {
        COLS: cols,
        MATRIX_ROWS: shard.rows,
        OUT_COLS: Math.round(matrix.rows * finish.outShare),
        FIRST: shard.first,
        SPLITS: splits,
        LANES: lanes,
        GROUPS: groups,
        ...finish.constants,
      },
      workgroups: [
        // Tiles of the same columns run side by side and share the weights in the cache.
        Math.ceil(rows / launch.rows),
        columnWorkgroups(shard, launch),
        splits,
      ],
      label,
      work: matmulWork(matrix, shard, rows, finish),
    })
  );
}
