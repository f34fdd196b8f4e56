import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
  type Work,
} from "../../src/gpu/kernel.ts";
import {
  isQuantized,
  type Matrix,
  type Precision,
  type Shard,
  type TensorMatrices,
  type TensorShard,
} from "../../src/gpu/matrix.ts";
import type { Slots } from "../../src/gpu/link.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../fragments/epilogue.ts";
import { shader } from "../shader.ts";
import { formatOf, type UnitsLoad, unitsLoad } from "./loads.ts";

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

function countsOf(
  unit: MatrixUnit,
  tile: TensorTile,
  { VEC8S: vec8s = 1, LOW = 1 }: Readonly<Record<string, number>> = {},
) {
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
    ...{ UNIT_HALF: unit.n / 2, HALF_WORDS: unit.n / 8 },
    STEPS: STAGE / unit.k,
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / vec8s / THREADS),
    X_LOADS: Math.ceil(TILE_ROWS * CHUNKS / THREADS),
    WEIGHT_WORDS: Math.max(TILE_COLS * (CHUNKS + 1), GRID_R * GRID_C * 2 * SUM_WORDS),
    X_WORDS: (1 + LOW) * TILE_ROWS * (CHUNKS + 1),
  };
}

export const BINDINGS: readonly string[] = ["weights", "x", "out"];
export const CONSTANTS: readonly string[] = ["COLS", "MATRIX_ROWS", "OUT_COLS", "FIRST", "SPLIT_K"];
export const SCALES: readonly string[] = ["w_scales", "x_scales"];

/** Storage buffers that a kernel with an epilogue binds. */
export function tensorBindings(
  { buffers }: Epilogue,
  { format }: Pick<Matrix, "format">,
): number {
  const { bindings } = unitsLoad(format);
  return BINDINGS.length + SCALES.length + bindings.length + Object.keys(buffers).length;
}

/** Slots of a kernel with an epilogue. */
export function unitsSlots({ slots, unitsOut = "tensor/out_store" }: Epilogue): Slots {
  return { ...slots, out: unitsOut };
}

/** What a kernel with an epilogue binds, and its constants. */
export function declared(
  { bindings, constants }: UnitsLoad,
  epilogue: Epilogue,
): { readonly bindings: string[]; readonly constants: string[] } {
  return {
    bindings: [...BINDINGS, ...Object.keys(epilogue.buffers), ...SCALES, ...bindings],
    constants: [...CONSTANTS, ...constants, ...Object.keys(epilogue.constants)],
  };
}

const kernels = new Map<string, Kernel>();

function tensorKernel(of: TensorMatmul, epilogue: Epilogue): Kernel {
  const { unit, tile, matrix, splitK = 1 } = of;
  const format = formatOf(of);
  const { m, n, k, lanes } = unit;
  const { subgroups, grid, own, stage, ahead } = tile;
  // The last turn of the loop may have fewer stages; one tile of rows was timed only with its branch.
  const ragged = matrix.cols % (stage * ahead * splitK) !== 0 || grid[0] * own[0] === 1;
  const parts = [m, n, k, lanes, subgroups, ...grid, ...own, stage, ahead];
  const kind = `${format.name}${ragged ? "_ragged" : ""}`;
  const name = `matmul_tensor${kind}_${epilogue.name}_${parts.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_tensor", {
      slots: { ...unitsSlots(epilogue), ...format.slots },
      counts: {
        ...{ ...countsOf(unit, tile, format.counts), RAGGED: Number(ragged) },
        ...{ ...format.counts, ...epilogue.counts },
      },
    });
    return kernel(name, code, declared(format, epilogue));
  });
}

/** What one dispatch multiplies: a shard of a matrix by rows of x. */
export interface TensorMatmul {
  readonly unit: MatrixUnit;
  readonly tile: TensorTile;
  readonly rows: number;
  /** Default bf16. */
  readonly matrix: Pick<Matrix, "rows" | "cols"> & Partial<Pick<Matrix, "format" | "lanes">>;
  readonly shard: Shard;
  /** Divides the columns into ranges, each a multiple of the tile's stage. */
  readonly splitK?: number;
  /** Whether `halveWeights` has made f16 of the weights; default false. */
  readonly halved?: boolean;
  /** One that stores numbers; default "store". */
  readonly epilogue?: Epilogue;
  /** Of x; default f32, for quantized weights always f16. */
  readonly precision?: Precision | undefined;
  readonly label: string;
}

/** The scales are what `rowScales` and `weightScales` write. */
export interface TensorBuffers {
  /** f32 [rows, cols] */
  readonly x: Operand;
  readonly out: Operand;
  readonly wScales: Operand;
  readonly xScales: Operand;
}

/** The CONSTANTS, and the epilogue's. */
export function tensorConstants(
  { matrix, shard, splitK = 1 }: Omit<TensorMatmul, "tile">,
  epilogue: Epilogue,
): Record<string, number> {
  const { format = "bf16", lanes = 1 } = matrix;
  return {
    COLS: matrix.cols,
    MATRIX_ROWS: shard.rows,
    OUT_COLS: Math.round(matrix.rows * epilogue.outShare),
    FIRST: shard.first,
    SPLIT_K: splitK,
    ...isQuantized(format) ? { LANES: lanes } : {},
    ...epilogue.constants,
  };
}

/** Weights and x in, what is made of y out. */
export function tensorWork(
  { rows, matrix: { cols }, shard }: Omit<TensorMatmul, "tile">,
  { moved }: Epilogue,
): Work {
  return {
    bytes: bytesOf(shard.operand) + (shard.scales ? bytesOf(shard.scales) : 0) +
      4 * rows * (cols + shard.rows * moved),
    flops: 2 * rows * shard.rows * cols,
  };
}

/** Records `out = epilogue(x W^T)` of one shard as `matmul` does. */
export function matmulTensor(
  { x, out, wScales, xScales }: TensorBuffers,
  of: TensorMatmul,
): Dispatch {
  const { unit, tile, rows, matrix, shard, splitK = 1, epilogue = PLAIN.store, label } = of;
  const { cols } = matrix;
  if (cols % (tile.stage * splitK) !== 0) {
    throw new Error(`${label}: ${cols} columns in ${splitK} ranges, in stages of ${tile.stage}`);
  }
  const [tileRows, tileCols] = tileSize(unit, tile);
  return dispatch(tensorKernel(of, epilogue), {
    buffers: {
      weights: shard.operand,
      x: { ...x, size: 4 * rows * cols },
      out,
      ...epilogue.buffers,
      w_scales: wScales,
      x_scales: xScales,
      scales: shard.scales ?? shard.operand,
    },
    constants: tensorConstants(of, epilogue),
    // Tiles of the same columns run side by side and share the weights in the cache.
    workgroups: [Math.ceil(rows / tileRows), Math.ceil(shard.rows / tileCols), splitK],
    label,
    work: tensorWork(of, epilogue),
  });
}

/** What a matrix's shards need; undefined where it is not multiplied on matrix units. */
export function tensorShards(
  { shards }: Pick<Matrix, "shards">,
  tensor: TensorMatrices | undefined,
): TensorShard[] | undefined {
  const found = shards.flatMap((shard) => tensor?.shards.get(shard) ?? []);
  return found.length === shards.length ? found : undefined;
}

const ROW_SCALES = kernel("row_scales", shader("tensor/row_scales"), {
  bindings: ["x", "scales"],
  constants: ["COLS"],
});

/** Records the scales [rows] of x [rows, cols], cols a multiple of 4. */
export function rowScales(
  { x, scales }: { readonly x: Operand; readonly scales: Operand },
  { rows, cols, label = "row_scales" }: {
    readonly rows: number;
    readonly cols: number;
    readonly label?: string;
  },
): Dispatch {
  return dispatch(ROW_SCALES, {
    buffers: { x: { ...x, size: 4 * rows * cols }, scales },
    constants: { COLS: cols },
    workgroups: [rows],
    label,
    work: { bytes: 4 * rows * cols, flops: 0 },
  });
}

const WEIGHT_SCALES = kernel("weight_scales", shader("tensor/weight_scales"), {
  bindings: ["weights", "scales", "faults"],
  constants: ["COLS", "ROWS_ACROSS"],
});

/** Workgroups of `weightScales` across: a vocabulary has more rows than a dimension may have workgroups. */
const ROWS_ACROSS = 1 << 15;

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
    constants: { COLS: cols, ROWS_ACROSS },
    workgroups: [Math.min(rows, ROWS_ACROSS), Math.ceil(rows / ROWS_ACROSS)],
    label: "weight_scales",
  });
}

const HALVE_WEIGHTS = kernel("halve_weights", shader("tensor/halve_weights"), {
  bindings: ["weights", "scales"],
  constants: ["COLS", "ROWS_ACROSS"],
});

/** Records that a bf16 matrix [rows, cols], cols even, becomes f16 in place, each row times its scale. */
export function halveWeights(
  buffers: { readonly weights: Operand; readonly scales: Operand },
  { rows, cols }: { readonly rows: number; readonly cols: number },
): Dispatch {
  return dispatch(HALVE_WEIGHTS, {
    buffers,
    constants: { COLS: cols, ROWS_ACROSS },
    workgroups: [Math.min(rows, ROWS_ACROSS), Math.ceil(rows / ROWS_ACROSS)],
    label: "halve_weights",
  });
}
