import { type Dispatch, dispatch, type Kernel, kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import type { Slots } from "../../src/gpu/link.ts";
import { type Epilogue, PLAIN } from "../fragments/epilogue.ts";
import { normedRows, type NormOfRows } from "../matmul/hold/hold.ts";
import { shader } from "../shader.ts";
import type { FewTile } from "./matmul_tensor_few.ts";
import {
  BINDINGS,
  CONSTANTS,
  formatCounts,
  kindOf,
  SCALES,
  type TensorMatmul,
  tensorConstants,
  tensorWork,
  unitsSlots,
} from "./matmul_tensor.ts";

/** How the row comes to workgroup memory, and what that needs besides. */
export interface HeldRow {
  /** Part of the kernel's name. */
  readonly name: string;
  readonly slots: Slots & { readonly hold: string; readonly held: string };
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
}

/** A row whose scale is known. */
export function plainRow(xScales: Operand): HeldRow {
  return {
    name: "row",
    slots: { hold: "tensor/hold_row", held: "tensor/held_row" },
    buffers: { x_scales: xScales },
    constants: {},
    counts: { BATCH: 4 },
  };
}

/** A row that is normed on the way, which gives its scale. */
export function normedRow(
  norm: NormOfRows,
  { cols, lanes }: {
    readonly cols: number;
    /** Of a subgroup. */
    readonly lanes: number;
  },
): HeldRow {
  const { lowered } = norm;
  const { name, buffers, constants, counts } = normedRows(norm, { cols, rows: 1 });
  return {
    name: `${name}${lowered ? "_lowered" : ""}`,
    slots: { hold: "tensor/hold_normed", held: "tensor/held_normed" },
    buffers: lowered ? { ...buffers, lowered: lowered.scales } : buffers,
    constants: lowered ? { ...constants, LOWERED_ROWS: lowered.stride } : constants,
    counts: { ...counts({ threads: lanes }), THREADS: lanes, ROWS: 1, LOWERS: Number(!!lowered) },
  };
}

export type HeldMatmul = Omit<TensorMatmul, "tile" | "rows"> & {
  readonly tile: FewTile;
  readonly row: HeldRow;
};

function countsOf({ m, n, k, lanes }: MatrixUnit, { columns, stage, ahead, guarded = 0 }: FewTile, range: number) {
  const [CHUNKS, TILE_COLS, SUM_WORDS] = [stage / 8, columns * n, m * n / 4];
  return {
    ...{ OWN_C: columns, STAGE: stage, AHEAD: ahead, STEPS: stage / k, RANGE: range / 8 },
    ...{ CHUNKS, TILE_COLS, SUM_WORDS, LANES: lanes, UNIT_M: m, UNIT_N: n, UNIT_K: k },
    UNIT_HALF: n / 2,
    RAGGED: Number(range % (stage * ahead) !== 0 || (guarded & 2) > 0),
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / lanes),
    WEIGHT_WORDS: Math.max(TILE_COLS * (CHUNKS + 1), columns * SUM_WORDS),
    X_WORDS: range / 4 + m * k / 8,
    BARRIERS: guarded & 8 ? 0 : 1,
  };
}

/** Whether an adapter can run a workgroup over a range of k. */
export function heldFits(
  unit: MatrixUnit,
  tile: FewTile,
  { range, limits: { maxComputeWorkgroupStorageSize } }: {
    readonly range: number;
    readonly limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">;
  },
): boolean {
  const { WEIGHT_WORDS, X_WORDS } = countsOf(unit, tile, range);
  return range % tile.stage === 0 && tile.stage % unit.k === 0 && unit.k % 8 === 0 &&
    range / 8 % (unit.m / 2 * (unit.k / 8)) === 0 && unit.lanes % (tile.columns * unit.n / 2) === 0 &&
    16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize;
}

/** Those with the highest numbers, in their order. */
const LAST = ["norm_weight", "sums", "stream", "lowered", "noted", "w_scales", "x_scales"];

function bindingsOf(epilogue: Epilogue, row: HeldRow): string[] {
  const all = new Set([...BINDINGS, ...SCALES.slice(0, 1)])
    .union(new Set([...Object.keys(epilogue.buffers), ...Object.keys(row.buffers)]));
  return [...all.difference(new Set(LAST)), ...LAST.filter((name) => all.has(name))];
}

const kernels = new Map<string, Kernel>();

function heldKernel(
  { unit, tile, row, matrix, splitK = 1, halved = false, precision = "f32" }: HeldMatmul,
  epilogue: Epilogue,
): Kernel {
  const { m, n, k, lanes } = unit;
  const range = matrix.cols / splitK;
  const parts = [m, n, k, lanes, range, tile.columns, tile.stage, tile.ahead, tile.guarded ?? 0];
  const kind = kindOf(halved, precision);
  const name = `matmul_tensor_held${kind}_${row.name}_${epilogue.name}_${parts.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_tensor_held", {
      slots: { ...unitsSlots(epilogue), ...row.slots },
      counts: {
        ...countsOf(unit, tile, range),
        ...formatCounts(halved, precision),
        ...epilogue.counts,
        ...row.counts,
      },
    });
    return kernel(name, code, {
      bindings: bindingsOf(epilogue, row),
      constants: [...CONSTANTS, ...Object.keys(epilogue.constants), ...Object.keys(row.constants)],
    });
  });
}

/** Records what `matmulTensor` does, to the bit, for one row. */
export function matmulTensorHeld(
  { x, out, wScales }: { readonly x: Operand; readonly out: Operand; readonly wScales: Operand },
  of: HeldMatmul,
): Dispatch {
  const { unit, tile, row, matrix: { cols }, shard, splitK = 1, label } = of;
  const epilogue = of.epilogue ?? PLAIN.store;
  return dispatch(heldKernel(of, epilogue), {
    buffers: {
      weights: shard.operand,
      x: { ...x, size: 4 * cols },
      out,
      w_scales: wScales,
      ...epilogue.buffers,
      ...row.buffers,
    },
    constants: { ...tensorConstants({ ...of, rows: 1 }, epilogue), ...row.constants },
    workgroups: [1, Math.ceil(shard.rows / (tile.columns * unit.n)), splitK],
    label,
    work: tensorWork({ ...of, rows: 1 }, epilogue),
  });
}
