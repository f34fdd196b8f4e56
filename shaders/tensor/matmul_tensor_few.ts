import { type Dispatch, dispatch, type Kernel, kernel } from "../../src/gpu/kernel.ts";
import type { Precision, TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../fragments/epilogue.ts";
import { shader } from "../shader.ts";
import {
  BINDINGS,
  CONSTANTS,
  formatCounts,
  kindOf,
  SCALES,
  type TensorBuffers,
  tensorConstants,
  type TensorMatmul,
  tensorWork,
  unitsSlots,
} from "./matmul_tensor.ts";

/** A workgroup of matmul_tensor_few.wgsl. No number of these changes a bit of what it computes. */
export interface FewTile {
  /** Tiles of columns. */
  readonly columns: number;
  /** Numbers of k that are brought at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
  readonly guarded?: number;
}

type FewMatmul = Omit<TensorMatmul, "tile"> & { readonly tile: FewTile };

/** Most rows that the kernel is for. */
export function fewRows({ m }: MatrixUnit): number {
  return m;
}

function countsOf({ m, n, k, lanes }: MatrixUnit, tile: FewTile, { rows, range = 0, precision = "f32" }: { rows: number; range?: number; precision?: Precision }) {
  const { columns, stage, ahead, guarded = 0 } = tile;
  const perRow = columns * n / 2;
  const apart = Number(precision === "f32" && rows > m / 2);
  const [CHUNKS, TILE_COLS, SUM_WORDS] = [stage / 8, columns * n, (1 + apart) * m * n / 4];
  const LO_ROW = apart ? m : m / 2;
  return {
    ...{ X_ROWS: rows, OWN_C: columns, STAGE: stage, AHEAD: ahead, STEPS: stage / k },
    ...{ CHUNKS, TILE_COLS, SUM_WORDS, LANES: lanes, UNIT_M: m, UNIT_N: n, UNIT_K: k },
    ...{ UNIT_HALF: n / 2, HALF_WORDS: n / 8 },
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / lanes),
    X_LOADS: Math.ceil(rows * CHUNKS / lanes),
    WEIGHT_WORDS: Math.max((guarded & 16 ? ahead : 1) * TILE_COLS * (CHUNKS + 1), columns * SUM_WORDS),
    X_WORDS: (guarded & 16 ? ahead : 1) * (1 + apart) * m * (CHUNKS + 1),
    WS_SLOT: guarded & 16 ? TILE_COLS * (CHUNKS + 1) : 0,
    XS_SLOT: guarded & 16 ? (1 + apart) * m * (CHUNKS + 1) : 0,
    BAR_ONE: guarded & 8 ? 0 : 1,
    BAR_TWO: guarded & (guarded & 16 && ahead > 1 ? 24 : 8) ? 0 : 1,
    LO_ROW,
    APART: apart,
    TURNS: Math.ceil(rows * perRow / lanes),
    RAGGED: Number(range % (stage * ahead) !== 0 || (guarded & 2) > 0),
    GUARDED: guarded & 1,
    CLAMPED: 1 - (guarded & 1),
    LATE: guarded >> 2 & 1,
    EARLY: 1 - (guarded >> 2 & 1),
  };
}

/** Whether an adapter can run a workgroup. */
export function fewFits(
  unit: MatrixUnit,
  tile: FewTile,
  { maxComputeWorkgroupStorageSize }: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
): boolean {
  const { WEIGHT_WORDS, X_WORDS } = countsOf(unit, tile, { rows: fewRows(unit) });
  return tile.stage % unit.k === 0 && unit.lanes % (tile.columns * unit.n / 2) === 0 &&
    16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize;
}

const kernels = new Map<string, Kernel>();

function fewKernel(
  { unit, tile, rows, matrix, splitK = 1, halved = false, precision = "f32" }: FewMatmul,
  epilogue: Epilogue,
): Kernel {
  const { m, n, k, lanes } = unit;
  const range = matrix.cols / splitK;
  const ragged = range % (tile.stage * tile.ahead) !== 0;
  const parts = [m, n, k, lanes, rows, tile.columns, tile.stage, tile.ahead, Number(ragged), tile.guarded ?? 0];
  const name = `matmul_tensor_few${kindOf(halved, precision)}_${epilogue.name}_${parts.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_tensor_few", {
      slots: unitsSlots(epilogue),
      counts: {
        ...countsOf(unit, tile, { rows, range, precision }),
        ...formatCounts(halved, precision),
        ...epilogue.counts,
      },
    });
    return kernel(name, code, {
      bindings: [...BINDINGS, ...Object.keys(epilogue.buffers), ...SCALES],
      constants: [...CONSTANTS, ...Object.keys(epilogue.constants)],
    });
  });
}

/** Records what `matmulTensor` does, to the bit, for at most `fewRows` rows. */
export function matmulTensorFew(
  { x, out, wScales, xScales }: TensorBuffers,
  of: FewMatmul,
): Dispatch {
  const { unit, tile, rows, matrix: { cols }, shard, splitK = 1, label } = of;
  const epilogue = of.epilogue ?? PLAIN.store;
  if (cols % (tile.stage * splitK) !== 0 || rows > fewRows(unit)) {
    throw new Error(`${label}: ${rows} rows, ${cols} columns in ${splitK} ranges`);
  }
  return dispatch(fewKernel(of, epilogue), {
    buffers: {
      weights: shard.operand,
      x: { ...x, size: 4 * rows * cols },
      out,
      ...epilogue.buffers,
      w_scales: wScales,
      x_scales: xScales,
    },
    constants: tensorConstants(of, epilogue),
    workgroups: [1, Math.ceil(shard.rows / (tile.columns * unit.n)), splitK],
    label,
    work: tensorWork(of, epilogue),
  });
}
