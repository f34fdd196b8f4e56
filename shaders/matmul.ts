import { bytesOf, type Dispatch, dispatch, type Operand, type Work } from "../src/gpu/kernel.ts";
import type { Matrix, Shard, Tuning } from "../src/gpu/matrix.ts";
import { type Finish, matmulKernel } from "./matmul_kernels.ts";
import { matmulShape } from "./matmul_shape.ts";

<<<<<<< HEAD
/** What happens to y: WGSL with `fn finish(row, c, half, sum)`, and what it needs besides. */
export interface Epilogue {
  /** Part of the kernel's name: equal names are equal code. */
  readonly name: string;
  readonly code: string;
  /** Bound after weights, x and out, in this order. */
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** Columns of `out`, over those of y. */
  readonly outShare: number;
  /** Elements read and written, over those of y. */
  readonly moved: number;
}

/** The plain ones: `out = y`, `out += y`, or `out = silu(gate) * up` of a paired matrix. */
export type Finish = "store" | "add" | "swiglu";

const NOTHING = { buffers: {}, constants: {} };
const PLAIN: Readonly<Record<Finish, Epilogue>> = {
  store: { name: "store", code: store, ...NOTHING, outShare: 1, moved: 1 },
  add: { name: "add", code: add, ...NOTHING, outShare: 1, moved: 2 },
  swiglu: { name: "swiglu", code: swiglu, ...NOTHING, outShare: 0.5, moved: 0.5 },
};

const CONSTANTS = ["COLS", "SHARD_ROWS", "OUT_COLS", "FIRST", "LANES", "GROUPS"];

/** Most rows of x that one workgroup takes; more rows are more workgroups. */
const MAX_TILE = 8;

const kernels = new Map<string, Kernel>();

function matmulKernel(
  format: WeightFormat,
  finish: Epilogue,
  rows: number,
  pairs: number,
): Kernel {
  const name = `matmul_${format}_${finish.name}_${rows}x${pairs}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = [
      // First: naga 29 panics where constants follow an array sized by overrides.
      finish.code,
      WEIGHTS[format],
      expand(body, { ROWS: rows, PAIRS: pairs, CHUNKS: CHUNKS[format] }),
    ].join("\n");
    const scales = isQuantized(format) ? ["scales"] : [];
    return kernel(name, code, {
      bindings: ["weights", "x", "out", ...Object.keys(finish.buffers), ...scales],
      constants: [...CONSTANTS, ...Object.keys(finish.constants)],
    });
  });
}

/** Rows of x a workgroup takes, so that the tiles of `rows` are as even as can be. */
export function tileRows(rows: number): number {
  return Math.ceil(rows / Math.ceil(rows / MAX_TILE));
}
=======
export type { Finish };
>>>>>>> 5a04db1 (matmul: x staged through workgroup memory with the weights on their way, 16 lanes, ranges of k whose sums leave apart; rows known from the size of x)

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
 * x is [rows, cols]; out is [rows, W.rows], or [rows, W.rows / 2] for swiglu. With `splits` above
 * 1, out is [splits, rows, W.rows], the sums over equal ranges of k.
 */
export function matmul(
  buffers: { readonly matrix: Matrix; readonly x: Operand; readonly out: Operand },
  shape: {
    readonly rows: number;
<<<<<<< HEAD
    readonly finish: Finish | Epilogue;
=======
    readonly finish: Finish;
    /** See `splitsOf`; 1 unless finish is "store". */
    readonly splits?: number;
>>>>>>> 5a04db1 (matmul: x staged through workgroup memory with the weights on their way, 16 lanes, ranges of k whose sums leave apart; rows known from the size of x)
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  const { matrix, x, out } = buffers;
<<<<<<< HEAD
  const { rows, tuning, label } = shape;
  const finish = typeof shape.finish === "string" ? PLAIN[shape.finish] : shape.finish;
  const tile = tileRows(rows);
=======
  const { rows, finish, splits = 1, tuning, label } = shape;
  const launch = matmulShape(matrix, { rows, splits, tuning });
>>>>>>> 5a04db1 (matmul: x staged through workgroup memory with the weights on their way, 16 lanes, ranges of k whose sums leave apart; rows known from the size of x)
  const groups = tuning.groups * tuning.lanes / matrix.lanes;
  const { format, cols, lanes } = matrix;
  const { pairs } = tuning;
  const code = matmulKernel(launch, { format, finish, pairs, lanes, groups });
  return matrix.shards.map((shard) =>
<<<<<<< HEAD
    dispatch(matmulKernel(matrix.format, finish, tile, tuning.pairs), {
      // Kernels of other formats bind no scales.
      buffers: {
        weights: shard.operand,
        x,
        out,
        ...finish.buffers,
=======
    dispatch(code, {
      buffers: {
        weights: shard.operand,
        // Its size tells the kernel how many rows there are.
        x: { ...x, size: 4 * rows * cols },
        out,
        // Kernels of other formats bind no scales.
>>>>>>> 5a04db1 (matmul: x staged through workgroup memory with the weights on their way, 16 lanes, ranges of k whose sums leave apart; rows known from the size of x)
        scales: shard.scales ?? shard.operand,
      },
      constants: {
        COLS: cols,
        SHARD_ROWS: shard.rows,
        OUT_COLS: matrix.rows * finish.outShare,
        FIRST: shard.first,
        SPLITS: splits,
        LANES: lanes,
        GROUPS: groups,
        ...finish.constants,
      },
      workgroups: [
        // Tiles of the same columns run side by side and share the weights in the cache.
        Math.ceil(rows / launch.rows),
        Math.ceil(shard.rows / 2 / pairs / groups),
        splits,
      ],
      label,
      work: matmulWork(matrix, shard, rows, finish),
    })
  );
}
