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
 * x is [rows, cols]; out is [rows, W.rows], or [rows, W.rows / 2] for swiglu. Both buffers are
 * long enough for the rows rounded up to whole tiles.
 */
export function matmul(
  buffers: { readonly matrix: Matrix; readonly x: Operand; readonly out: Operand },
  shape: {
    readonly rows: number;
    readonly finish: Finish | Epilogue;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  const { matrix, x, out } = buffers;
  const { rows, tuning, label } = shape;
  const finish = typeof shape.finish === "string" ? PLAIN[shape.finish] : shape.finish;
  const tile = tileRows(rows);
  const groups = tuning.groups * tuning.lanes / matrix.lanes;
  return matrix.shards.map((shard) =>
    dispatch(matmulKernel(matrix.format, finish, tile, tuning.pairs), {
      // Kernels of other formats bind no scales.
      buffers: {
        weights: shard.operand,
        x,
        out,
        ...finish.buffers,
        scales: shard.scales ?? shard.operand,
      },
      constants: {
        COLS: matrix.cols,
        SHARD_ROWS: shard.rows,
        OUT_COLS: matrix.rows * finish.outShare,
        FIRST: shard.first,
        LANES: matrix.lanes,
        GROUPS: groups,
        ...finish.constants,
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
