import { type Dispatch, dispatch, type Kernel, kernel } from "../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../fragments/epilogue.ts";
import { shader } from "../shader.ts";
import { formatOf } from "./loads.ts";
import {
  declared,
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
  /**
   * Whether they are loaded in branches, which compilers move no load out of: fewer registers, and so more
   * workgroups at once, than in one run of instructions, where the steps of a stage are a loop.
   */
  readonly branched: boolean;
}

type FewMatmul = Omit<TensorMatmul, "tile"> & { readonly tile: FewTile };

/** Most rows that the kernel is for. */
export function fewRows({ m }: MatrixUnit): number {
  return m / 2;
}

function countsOf(
  { m, n, k, lanes }: MatrixUnit,
  { columns, stage, ahead, branched }: FewTile,
  { rows, ragged, vec8s = 1 }: {
    readonly rows: number;
    readonly ragged: boolean;
    readonly vec8s?: number;
  },
) {
  const [CHUNKS, TILE_COLS, SUM_WORDS] = [stage / 8, columns * n, m * n / 4];
  return {
    ...{ X_ROWS: rows, OWN_C: columns, STAGE: stage, AHEAD: ahead, STEPS: stage / k },
    ...{ CHUNKS, TILE_COLS, SUM_WORDS, LANES: lanes, UNIT_M: m, UNIT_N: n, UNIT_K: k },
    ...{ UNIT_HALF: n / 2, HALF_WORDS: n / 8 },
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / vec8s / lanes),
    X_LOADS: Math.ceil(rows * CHUNKS / lanes),
    WEIGHT_WORDS: Math.max(TILE_COLS * (CHUNKS + 1), columns * SUM_WORDS),
    X_WORDS: m * (CHUNKS + 1),
    TURNS: Math.ceil(rows * columns * n / 2 / lanes),
    ...{ RAGGED: Number(ragged), BRANCHED: Number(branched), STRAIGHT: Number(!branched) },
    OWN_STEPS: branched ? stage / k : 1,
  };
}

/** Whether an adapter can run a workgroup. */
export function fewFits(
  unit: MatrixUnit,
  tile: FewTile,
  { maxComputeWorkgroupStorageSize }: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
): boolean {
  const { WEIGHT_WORDS, X_WORDS } = countsOf(unit, tile, { rows: 1, ragged: true });
  return tile.stage % unit.k === 0 && unit.lanes % (tile.columns * unit.n / 2) === 0 &&
    16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize;
}

const kernels = new Map<string, Kernel>();

function fewKernel(of: FewMatmul, epilogue: Epilogue): Kernel {
  const { unit, tile, rows, matrix, splitK = 1 } = of;
  const format = formatOf(of);
  const { m, n, k, lanes } = unit;
  const { columns, stage, ahead, branched } = tile;
  // In branches, one more costs nothing.
  const ragged = branched || matrix.cols / splitK % (stage * ahead) !== 0;
  const loads = branched ? "branched" : ragged ? "ragged" : "straight";
  const parts = [m, n, k, lanes, rows, columns, stage, ahead, loads];
  const name = `matmul_tensor_few${format.name}_${epilogue.name}_${parts.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_tensor_few", {
      slots: { ...unitsSlots(epilogue), ...format.slots },
      counts: {
        ...countsOf(unit, tile, { rows, ragged, vec8s: format.counts.VEC8S }),
        ...format.counts,
        ...epilogue.counts,
      },
    });
    return kernel(name, code, declared(format, epilogue));
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
      scales: shard.scales ?? shard.operand,
    },
    constants: tensorConstants(of, epilogue),
    workgroups: [1, Math.ceil(shard.rows / (tile.columns * unit.n)), splitK],
    label,
    work: tensorWork(of, epilogue),
  });
}
