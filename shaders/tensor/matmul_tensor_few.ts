import { type Dispatch, type Kernel, kernel } from "../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { PLAIN } from "../fragments/epilogue.ts";
import { shader } from "../shader.ts";
import {
  declared,
  preparedCounts,
  type TensorBuffers,
  tensorDispatch,
  type TensorMatmul,
  unitsSlots,
} from "./common.ts";
import { formatOf } from "./loads.ts";

/** A workgroup of matmul_tensor_few.wgsl. No number of these changes a bit of what it computes. */
export interface FewTile {
  /** Tiles of columns. */
  readonly columns: number;
  /** Numbers of k that are brought at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
}

/** Most rows that the kernel is for. */
export function fewRows({ m }: MatrixUnit): number {
  return m / 2;
}

function countsOf(
  { m, n, k, lanes }: MatrixUnit,
  { columns, stage, ahead }: FewTile,
  { rows, vec8s = 1 }: { readonly rows: number; readonly vec8s?: number },
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
  };
}

/** Whether an adapter can run a workgroup. */
export function fewFits(
  unit: MatrixUnit,
  tile: FewTile,
  { maxComputeWorkgroupStorageSize }: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
): boolean {
  const { WEIGHT_WORDS, X_WORDS } = countsOf(unit, tile, { rows: 1 });
  return tile.stage % unit.k === 0 && unit.lanes % (tile.columns * unit.n / 2) === 0 &&
    16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize;
}

const kernels = new Map<string, Kernel>();

function fewKernel(of: TensorMatmul<FewTile>): Kernel {
  const { unit, tile, rows, epilogue = PLAIN.store } = of;
  const format = formatOf(of);
  const { m, n, k, lanes } = unit;
  const { columns, stage, ahead } = tile;
  const parts = [m, n, k, lanes, rows, columns, stage, ahead];
  const name = `matmul_tensor_few${format.name}_${epilogue.name}_${parts.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_tensor_few", {
      slots: { ...unitsSlots(epilogue), ...format.slots },
      counts: {
        ...countsOf(unit, tile, { rows, vec8s: format.counts.VEC8S }),
        ...format.counts,
        ...preparedCounts(epilogue),
        ...epilogue.counts,
      },
    });
    return kernel(name, code, declared(format, epilogue));
  });
}

/** Records what `matmulTensor` does, to the bit, for at most `fewRows` rows. */
export function matmulTensorFew(buffers: TensorBuffers, of: TensorMatmul<FewTile>): Dispatch {
  const { unit, tile, rows, matrix: { cols }, shard, splitK = 1, label } = of;
  if (cols % (tile.stage * splitK) !== 0 || rows > fewRows(unit)) {
    throw new Error(`${label}: ${rows} rows, ${cols} columns in ${splitK} ranges`);
  }
  return tensorDispatch(fewKernel(of), buffers, {
    of,
    workgroups: [1, Math.ceil(shard.rows / (tile.columns * unit.n)), splitK],
  });
}
