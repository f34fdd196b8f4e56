import { bytesOf, type Cost, type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { requireLoaded } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { type Epilogue, PLAIN, type PlainEpilogue } from "../lib/epilogue.ts";
import { lanesOf } from "./matmul_lanes.ts";
import { matmulKernel } from "./matmul_kernels.ts";
import { columnWorkgroups, matmulShape, residentShape } from "./matmul_shape.ts";
import { PLAIN_ROWS, type Prologue } from "./prologue/prologue.ts";
import { matmulOnUnits } from "./tensor/matmul_on_units.ts";

export type { Epilogue, PlainEpilogue };

/** Cost of one dispatch: it reads the weights and x and writes the outputs; the epilogue "add" also reads them. */
function matmulWork({ cols }: Matrix, shard: Shard, rows: number, { moved }: Epilogue): Cost {
  const outputs = shard.rows * moved;
  return {
    bytes: bytesOf(shard.operand) + (shard.scales ? bytesOf(shard.scales) : 0) +
      4 * rows * (cols + outputs),
    flops: 2 * rows * cols * shard.rows,
  };
}

/**
 * Records `out = epilogue(x W^T)` for `rows` rows: one dispatch per shard. On matrix units, if x has no scales yet, a
 * dispatch before them computes the scales.
 *
 * x is [rows, cols]; out is [rows, W.rows], or [rows, W.rows / 2] for a gated one. With `splitK`
 * above 1, out is [splitK, rows, W.rows], the sums over equal ranges of k.
 */
export function matmul(
  buffers: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** Scales of x's rows, f32 [rows], if the kernel that wrote x stored them; for matrix units. */
    readonly xScales?: Operand | undefined;
    /** Whether x is stored as f16 for matrix units: see `takesF16`. */
    readonly xIsF16?: boolean | undefined;
    readonly out: Operand;
  },
  shape: {
    readonly rows: number;
    readonly epilogue: PlainEpilogue | Epilogue;
    /** See `splitKOf`; 1 unless the epilogue also works on the sum of one range of k: store, scale, bias. */
    readonly splitK?: number;
    /** How x is brought into workgroup memory, for a launch that keeps it there; default: as it is. */
    readonly prologue?: Prologue;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  const { matrix, x, out } = buffers;
  const { rows, splitK = 1, prologue = PLAIN_ROWS, tuning, label } = shape;
  const epilogue = typeof shape.epilogue === "string" ? PLAIN[shape.epilogue] : shape.epilogue;
  const special = prologue === PLAIN_ROWS ? undefined : prologue;
  const onUnits = matmulOnUnits(buffers, {
    rows,
    epilogue,
    splitK,
    prologue: special,
    tuning,
    label,
  });
  if (onUnits) return onUnits;
  if (buffers.xIsF16) throw new Error(`${label}: its x is f16, for matrix units alone`);
  requireLoaded(matrix, tuning.tensor, label);
  const use = {
    rows,
    splitK,
    tuning,
    partial: epilogue.out === "partials",
  };
  const launch = prologue === PLAIN_ROWS
    ? matmulShape(matrix, use)
    : residentShape(matrix, use, prologue.widen);
  const { format, cols } = matrix;
  const lanes = lanesOf(matrix, tuning);
  const { groups } = launch;
  const code = matmulKernel(launch, {
    format,
    epilogue,
    lanes,
    packedLanes: matrix.lanes,
    prologue,
  });
  return matrix.shards.map((shard) =>
    dispatch(code, {
      buffers: {
        weights: shard.operand,
        // The kernel computes the number of rows from its size.
        x: { ...x, size: 4 * rows * cols },
        out,
        ...epilogue.buffers,
        ...prologue.buffers,
        ...shard.scales ? { scales: shard.scales } : {},
      },
      constants: {
        COLS: cols,
        MATRIX_ROWS: shard.rows,
        OUT_COLS: Math.round(matrix.rows * epilogue.outShare),
        FIRST: shard.first,
        SPLIT_K: splitK,
        LANES: lanes,
        GROUPS: groups,
        ...epilogue.constants,
        ...prologue.constants,
      },
      workgroups: [
        // Tiles of the same columns run side by side and share the weights in the cache.
        Math.ceil(rows / launch.rows),
        columnWorkgroups(shard, launch),
        splitK,
      ],
      label,
      work: matmulWork(matrix, shard, rows, epilogue),
    })
  );
}
