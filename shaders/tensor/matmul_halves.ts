import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../fragments/epilogue.ts";
import { shader } from "../shader.ts";
import type { TensorMatmul } from "./matmul_tensor.ts";

/** A workgroup of matmul_halves.wgsl. No number of these changes a bit of what it computes. */
export interface HalvesTile {
  /** Subgroups, rows by columns of tiles. */
  readonly grid: readonly [rows: number, columns: number];
  /** Tiles of each of them. */
  readonly own: readonly [rows: number, columns: number];
  /** Numbers of k that are brought at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that workgroup memory holds. */
  readonly buffers: 1 | 2;
}

/** Rows and columns of outputs of a workgroup. */
export function halvesTileSize(
  { m, n }: MatrixUnit,
  { grid, own }: HalvesTile,
): [number, number] {
  return [grid[0] * own[0] * m, grid[1] * own[1] * n];
}

/** Bytes of workgroup memory. */
export function halvesTileBytes(unit: MatrixUnit, tile: HalvesTile): number {
  return 16 * countsOf(unit, tile).POOL;
}

/** Invocations of a workgroup. */
export function halvesTileThreads({ lanes }: MatrixUnit, { grid }: HalvesTile): number {
  return grid[0] * grid[1] * lanes;
}

function countsOf(unit: MatrixUnit, tile: HalvesTile) {
  const { grid: [GRID_R, GRID_C], own: [OWN_R, OWN_C], stage: STAGE, buffers: BUFFERS } = tile;
  const [TILE_ROWS, TILE_COLS] = halvesTileSize(unit, tile);
  const THREADS = halvesTileThreads(unit, tile);
  const CHUNKS = STAGE / 8;
  const SUM_WORDS = unit.m * unit.n / 4;
  const buffer = (TILE_COLS + 2 * TILE_ROWS) * (CHUNKS + 1);
  return {
    ...{ GRID_R, OWN_R, OWN_C, STAGE, BUFFERS, SINGLE: 2 - BUFFERS },
    ...{ TILE_ROWS, TILE_COLS, THREADS, CHUNKS, SUM_WORDS },
    ...{ LANES: unit.lanes, UNIT_M: unit.m, UNIT_N: unit.n, UNIT_K: unit.k },
    ...{ UNIT_HALF: unit.n / 2, UNIT_EIGHTS: unit.k / 8 },
    STEPS: STAGE / unit.k,
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / THREADS),
    X_LOADS: Math.ceil(TILE_ROWS * CHUNKS / THREADS),
    POOL: Math.max(BUFFERS * buffer, GRID_R * GRID_C * 2 * SUM_WORDS),
  };
}

const kernels = new Map<string, Kernel>();

function halvesKernel(unit: MatrixUnit, tile: HalvesTile, epilogue: Epilogue): Kernel {
  const { m, n, k, lanes } = unit;
  const { grid, own, stage, buffers } = tile;
  const name = `matmul_halves_${epilogue.name}_${
    [m, n, k, lanes, ...grid, ...own, stage, buffers].join("_")
  }`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_halves", {
      slots: { out: "matmul/out", ...epilogue.slots },
      counts: { ...countsOf(unit, tile), ...epilogue.counts },
    });
    return kernel(name, code, {
      bindings: ["weights", "x", "out", ...Object.keys(epilogue.buffers), "w_scales", "x_scales"],
      constants: [
        ...["COLS", "MATRIX_ROWS", "OUT_COLS", "FIRST", "SPLIT_K"],
        ...Object.keys(epilogue.constants),
      ],
    });
  });
}

/** Records what `matmulTensor` does, with the same bits, for x that `rowHalves` has split. */
export function matmulHalves(
  { halves, out, wScales, xScales }: {
    /** As many bytes as x. */
    readonly halves: Operand;
    readonly out: Operand;
    readonly wScales: Operand;
    readonly xScales: Operand;
  },
  of: Omit<TensorMatmul, "tile"> & { readonly tile: HalvesTile },
): Dispatch {
  const { unit, tile, rows, matrix, shard, splitK = 1, epilogue = PLAIN.store, label } = of;
  const { cols } = matrix;
  if (cols % (tile.stage * splitK) !== 0) {
    throw new Error(`${label}: ${cols} columns in ${splitK} ranges, in stages of ${tile.stage}`);
  }
  const [tileRows, tileCols] = halvesTileSize(unit, tile);
  return dispatch(halvesKernel(unit, tile, epilogue), {
    buffers: {
      weights: shard.operand,
      x: { ...halves, size: 4 * rows * cols },
      out,
      ...epilogue.buffers,
      w_scales: wScales,
      x_scales: xScales,
    },
    constants: {
      COLS: cols,
      MATRIX_ROWS: shard.rows,
      OUT_COLS: Math.round(matrix.rows * epilogue.outShare),
      FIRST: shard.first,
      SPLIT_K: splitK,
      ...epilogue.constants,
    },
    // Tiles of the same columns run side by side and share the weights in the cache.
    workgroups: [Math.ceil(rows / tileRows), Math.ceil(shard.rows / tileCols), splitK],
    label,
    work: {
      bytes: 2 * shard.rows * cols + 4 * rows * (cols + shard.rows * epilogue.moved),
      flops: 2 * rows * shard.rows * cols,
    },
  });
}

const splitters = new Map<number, Kernel<"x" | "scales" | "out", "COLS">>();

function splitter(eights: number): Kernel<"x" | "scales" | "out", "COLS"> {
  return splitters.getOrInsertComputed(eights, () => {
    const code = shader("tensor/row_halves", { counts: { EIGHTS: eights } });
    return kernel(`row_halves_${eights}`, code, {
      bindings: ["x", "scales", "out"],
      constants: ["COLS"],
    });
  });
}

/** Records x [rows, cols] as pairs of f16 numbers, and their scales [rows], as `matmulHalves` takes them. */
export function rowHalves(
  { x, scales, halves }: {
    readonly x: Operand;
    readonly scales: Operand;
    /** As many bytes as x. */
    readonly halves: Operand;
  },
  { unit, rows, cols, label = "row_halves" }: {
    readonly unit: MatrixUnit;
    readonly rows: number;
    readonly cols: number;
    readonly label?: string;
  },
): Dispatch {
  const size = 4 * rows * cols;
  return dispatch(splitter(unit.k / 8), {
    buffers: { x: { ...x, size }, scales, out: { ...halves, size } },
    constants: { COLS: cols },
    workgroups: [rows],
    label,
    work: { bytes: 2 * size, flops: 0 },
  });
}
