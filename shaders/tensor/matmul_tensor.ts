import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { shader } from "../shader.ts";

/** A workgroup of matmul_tensor.wgsl. No number of these changes a bit of what it computes. */
export interface TensorTile {
  readonly subgroups: number;
  /** Subgroups that multiply, rows by columns of tiles: at most `subgroups`. */
  readonly grid: readonly [rows: number, columns: number];
  /** Tiles of each of them. */
  readonly own: readonly [rows: number, columns: number];
  /** Numbers of k that are brought at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
}

/** Rows and columns of outputs of a workgroup. */
export function tileSize({ m, n }: MatrixUnit, { grid, own }: TensorTile): [number, number] {
  return [grid[0] * own[0] * m, grid[1] * own[1] * n];
}

/** Bytes of workgroup memory. */
export function tileBytes(unit: MatrixUnit, tile: TensorTile): number {
  const { WEIGHT_WORDS, X_WORDS } = countsOf(unit, tile);
  return 16 * (WEIGHT_WORDS + X_WORDS);
}

function countsOf(unit: MatrixUnit, tile: TensorTile) {
  const { subgroups, grid: [GRID_R, GRID_C], own: [OWN_R, OWN_C], stage: STAGE } = tile;
  const { ahead: AHEAD } = tile;
  const [TILE_ROWS, TILE_COLS] = tileSize(unit, tile);
  const THREADS = subgroups * unit.lanes;
  const CHUNKS = STAGE / 8;
  const SUM_WORDS = unit.m * unit.n / 4;
  return {
    ...{
      GRID_R,
      GRID_C,
      OWN_R,
      OWN_C,
      STAGE,
      AHEAD,
      TILE_ROWS,
      TILE_COLS,
      THREADS,
      CHUNKS,
      SUM_WORDS,
    },
    ...{ LANES: unit.lanes, UNIT_M: unit.m, UNIT_N: unit.n, UNIT_K: unit.k },
    STEPS: STAGE / unit.k,
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / THREADS),
    X_LOADS: Math.ceil(TILE_ROWS * CHUNKS / THREADS),
    WEIGHT_WORDS: Math.max(TILE_COLS * (CHUNKS + 1), GRID_R * GRID_C * 2 * SUM_WORDS),
    X_WORDS: 2 * TILE_ROWS * (CHUNKS + 1),
  };
}

type TensorKernel = Kernel<
  "weights" | "w_scales" | "x" | "x_scales" | "out",
  "COLS" | "MATRIX_ROWS"
>;

const kernels = new Map<string, TensorKernel>();

function tensorKernel(unit: MatrixUnit, tile: TensorTile): TensorKernel {
  const { m, n, k, lanes } = unit;
  const { subgroups, grid, own, stage, ahead } = tile;
  const parts = [m, n, k, lanes, subgroups, ...grid, ...own, stage, ahead];
  const name = `matmul_tensor_${parts.join("_")}`;
  return kernels.getOrInsertComputed(
    name,
    () =>
      kernel(name, shader("tensor/matmul_tensor", { counts: countsOf(unit, tile) }), {
        bindings: ["weights", "w_scales", "x", "x_scales", "out"],
        constants: ["COLS", "MATRIX_ROWS"],
      }),
  );
}

/**
 * Records `out = x W^T` for `rows` rows, W in bf16 [matrixRows, cols], x [rows, cols], out
 * [rows, matrixRows] in f32. The scales are what `rowScales` and `weightScales` write.
 */
export function matmulTensor(
  buffers: {
    readonly weights: Operand;
    readonly wScales: Operand;
    readonly x: Operand;
    readonly xScales: Operand;
    readonly out: Operand;
  },
  { unit, tile, rows, matrixRows, cols, label }: {
    readonly unit: MatrixUnit;
    readonly tile: TensorTile;
    readonly rows: number;
    readonly matrixRows: number;
    /** A multiple of the tile's stage. */
    readonly cols: number;
    readonly label: string;
  },
): Dispatch {
  if (cols % tile.stage !== 0) {
    throw new Error(`${label}: ${cols} columns in stages of ${tile.stage}`);
  }
  const [tileRows, tileCols] = tileSize(unit, tile);
  const { weights, wScales, x, xScales, out } = buffers;
  return dispatch(tensorKernel(unit, tile), {
    buffers: {
      weights,
      w_scales: wScales,
      x: { ...x, size: 4 * rows * cols },
      x_scales: xScales,
      out,
    },
    constants: { COLS: cols, MATRIX_ROWS: matrixRows },
    workgroups: [Math.ceil(rows / tileRows), Math.ceil(matrixRows / tileCols)],
    label,
    work: {
      bytes: 2 * matrixRows * cols + 4 * rows * (cols + matrixRows),
      flops: 2 * rows * matrixRows * cols,
    },
  });
}

const ROW_SCALES = kernel("row_scales", shader("tensor/row_scales"), {
  bindings: ["x", "scales"],
  constants: ["COLS"],
});

/** Records the scales [rows] of x [rows, cols], cols a multiple of 4. */
export function rowScales(
  { x, scales }: { readonly x: Operand; readonly scales: Operand },
  { rows, cols }: { readonly rows: number; readonly cols: number },
): Dispatch {
  return dispatch(ROW_SCALES, {
    buffers: { x: { ...x, size: 4 * rows * cols }, scales },
    constants: { COLS: cols },
    workgroups: [rows],
    label: "row_scales",
    work: { bytes: 4 * rows * cols, flops: 0 },
  });
}

const WEIGHT_SCALES = kernel("weight_scales", shader("tensor/weight_scales"), {
  bindings: ["weights", "scales", "faults"],
  constants: ["COLS"],
});

/**
 * Records the scales [rows] of a bf16 matrix [rows, cols], cols even, and how many numbers of each row
 * are no f16 times its scale: a matrix with any stays with the other kernels.
 */
export function weightScales(
  buffers: { readonly weights: Operand; readonly scales: Operand; readonly faults: Operand },
  { rows, cols }: { readonly rows: number; readonly cols: number },
): Dispatch {
  return dispatch(WEIGHT_SCALES, {
    buffers,
    constants: { COLS: cols },
    workgroups: [rows],
    label: "weight_scales",
  });
}
