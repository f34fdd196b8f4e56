import { type Dispatch, dispatch, type Kernel, kernel } from "../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../fragments/epilogue.ts";
import { shader } from "../shader.ts";
import {
  BINDINGS,
  CONSTANTS,
  SCALES,
  type TensorBuffers,
  tensorConstants,
  type TensorMatmul,
  tensorWork,
} from "./matmul_tensor.ts";

/** A workgroup of matmul_tensor_few.wgsl. No number of these changes a bit of what it computes. */
export interface FewTile {
  readonly subgroups: number;
  /** Those that multiply, the others only bring data: at most `subgroups`. */
  readonly grid: number;
  /** Tiles of columns of each of them. */
  readonly columns: number;
  /** Numbers of k that are brought at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
  /** Stages in workgroup memory at a time. */
  readonly buffers: 1 | 2;
}

/** Most rows of the unit that a workgroup makes. */
const MOST_TILES = 2;

/** Most rows that the kernel is for. */
export function fewRows({ m }: MatrixUnit): number {
  return MOST_TILES * m;
}

function countsOf(unit: MatrixUnit, tile: FewTile, rows: number) {
  const { subgroups, grid, columns, stage, ahead, buffers } = tile;
  const { m, n, k, lanes } = unit;
  const APART = Number(rows > m / 2);
  const OWN_R = Math.ceil(rows / m);
  const [CHUNKS, THREADS, TILE_COLS] = [stage / 8, subgroups * lanes, grid * columns * n];
  const LO_ROW = APART ? OWN_R * m : m / 2;
  const sumWords = m * n / 4;
  const TILE_WORDS = (1 + APART) * sumWords;
  return {
    ...{ X_ROWS: rows, OWN_R, OWN_C: columns, STAGE: stage, AHEAD: ahead, STEPS: stage / k },
    ...{ APART, LO_ROW, LO_WORDS: APART ? sumWords : sumWords / 2, TILE_WORDS },
    ...{ CHUNKS, THREADS, TILE_COLS, LANES: lanes, UNIT_M: m, UNIT_N: n, UNIT_K: k },
    ...{ GRID: grid, BUFFERS: buffers, SINGLE: 2 - buffers, DOUBLE: buffers - 1 },
    ...{ UNIT_HALF: n / 2, HALF_WORDS: n / 8 },
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / THREADS),
    X_LOADS: Math.ceil(rows * CHUNKS / THREADS),
    WEIGHT_WORDS: Math.max(
      buffers * TILE_COLS * (CHUNKS + 1),
      grid * OWN_R * columns * TILE_WORDS,
    ),
    X_WORDS: buffers * 2 * LO_ROW * (CHUNKS + 1),
  };
}

/** Whether an adapter can run a workgroup that makes `rows` rows. */
export function fewFits(
  unit: MatrixUnit,
  tile: FewTile,
  rows: number,
  { maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup }: Omit<
    TensorLimits,
    "maxStorageBuffersPerShaderStage"
  >,
): boolean {
  const { WEIGHT_WORDS, X_WORDS, THREADS } = countsOf(unit, tile, rows);
  return 16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize &&
    THREADS <= maxComputeInvocationsPerWorkgroup && tile.stage % unit.k === 0;
}

const kernels = new Map<string, Kernel>();

function fewKernel(
  { unit, tile, rows, halved = false }: FewMatmul,
  epilogue: Epilogue,
): Kernel {
  const { subgroups, grid, columns, stage, ahead, buffers } = tile;
  const { m, n, k, lanes } = unit;
  const parts = [m, n, k, lanes, rows, subgroups, grid, columns, stage, ahead, buffers];
  const format = halved ? "_halved" : "";
  const name = `matmul_tensor_few${format}_${epilogue.name}_${parts.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_tensor_few", {
      slots: { ...epilogue.slots, out: epilogue.unitsOut ?? "tensor/out_store" },
      counts: {
        ...countsOf(unit, tile, rows),
        ...{ HALVED: Number(halved), CONVERTED: Number(!halved) },
        ...epilogue.counts,
      },
    });
    return kernel(name, code, {
      bindings: [...BINDINGS, ...Object.keys(epilogue.buffers), ...SCALES],
      constants: [...CONSTANTS, ...Object.keys(epilogue.constants)],
    });
  });
}

type FewMatmul = Omit<TensorMatmul, "tile"> & { readonly tile: FewTile };

/** What `matmulTensor` records, to the bit, for at most `fewRows` rows. */
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
    workgroups: [1, Math.ceil(shard.rows / (tile.grid * tile.columns * unit.n)), splitK],
    label,
    work: tensorWork(of, epilogue),
  });
}
