import { expand } from "../src/gpu/expand.ts";
import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
  type Work,
} from "../src/gpu/kernel.ts";
import {
  CHUNKS,
  isQuantized,
  type Matrix,
  type Shard,
  type Tuning,
  type WeightFormat,
} from "../src/gpu/matrix.ts";
import add from "./finish_add.wgsl" with { type: "text" };
import store from "./finish_store.wgsl" with { type: "text" };
import swiglu from "./finish_swiglu.wgsl" with { type: "text" };
import body from "./matmul.wgsl" with { type: "text" };
import { WEIGHTS } from "./weights.ts";

/** What happens to y: `out = y`, `out += y`, or `out = silu(gate) * up` of a paired matrix. */
export type Finish = "store" | "add" | "swiglu";

const FINISH: Readonly<Record<Finish, string>> = { store, add, swiglu };

const FLOAT = ["weights", "x", "out"] as const;
const QUANTIZED = [...FLOAT, "scales"] as const;

type MatmulKernel = Kernel<
  typeof QUANTIZED[number],
  "COLS" | "SHARD_ROWS" | "OUT_COLS" | "FIRST" | "LANES" | "GROUPS"
>;

/** Most rows of x that one workgroup takes; more rows are more workgroups. */
const MAX_TILE = 8;

const kernels = new Map<string, MatmulKernel>();

function matmulKernel(
  format: WeightFormat,
  finish: Finish,
  rows: number,
  pairs: number,
): MatmulKernel {
  const name = `matmul_${format}_${finish}_${rows}x${pairs}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = [
      WEIGHTS[format],
      expand(body, { ROWS: rows, PAIRS: pairs, CHUNKS: CHUNKS[format] }),
      FINISH[finish],
    ].join(
      "\n",
    );
    return kernel(name, code, {
      bindings: isQuantized(format) ? QUANTIZED : FLOAT,
      constants: ["COLS", "SHARD_ROWS", "OUT_COLS", "FIRST", "LANES", "GROUPS"],
    });
  });
}

/** Rows of x a workgroup takes, so that the tiles of `rows` are as even as can be. */
export function tileRows(rows: number): number {
  return Math.ceil(rows / Math.ceil(rows / MAX_TILE));
}

/** Weights and x in, out written; "add" reads out before. */
function matmulWork({ cols }: Matrix, shard: Shard, rows: number, finish: Finish): Work {
  const outputs = shard.rows * { store: 1, add: 2, swiglu: 0.5 }[finish];
  return {
    bytes: bytesOf(shard.operand) + (shard.scales ? bytesOf(shard.scales) : 0) +
      4 * rows * (cols + outputs),
    flops: 2 * rows * cols * shard.rows,
  };
}

/**
 * Records `out = finish(x W^T)` for `rows` rows: a dispatch a shard.
 *
 * x is [rows, cols]; out is [rows, W.rows], or [rows, W.rows / 2] for swiglu. Both buffers are
 * long enough for the rows rounded up to whole tiles.
 */
export function matmul(
  buffers: { readonly matrix: Matrix; readonly x: Operand; readonly out: Operand },
  shape: {
    readonly rows: number;
    readonly finish: Finish;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  const { matrix, x, out } = buffers;
  const { rows, finish, tuning, label } = shape;
  const tile = tileRows(rows);
  const groups = tuning.groups * tuning.lanes / matrix.lanes;
  return matrix.shards.map((shard) =>
    dispatch(matmulKernel(matrix.format, finish, tile, tuning.pairs), {
      // Kernels of other formats bind no scales.
      buffers: { weights: shard.operand, x, out, scales: shard.scales ?? shard.operand },
      constants: {
        COLS: matrix.cols,
        SHARD_ROWS: shard.rows,
        OUT_COLS: finish === "swiglu" ? matrix.rows / 2 : matrix.rows,
        FIRST: shard.first,
        LANES: matrix.lanes,
        GROUPS: groups,
      },
      workgroups: [
        Math.ceil(shard.rows / 2 / tuning.pairs / groups),
        Math.ceil(rows / tile),
      ],
      label,
      work: matmulWork(matrix, shard, rows, finish),
    })
  );
}
