import { type Dispatch, type Kernel, kernel } from "../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../fragments/epilogue.ts";
import { shader } from "../shader.ts";
import { formatOf } from "./loads.ts";
import {
  declared,
  preparedCounts,
  type TensorBuffers,
  tensorDispatch,
  type TensorMatmul,
  unitsSlots,
} from "./common.ts";
import { type HeldRow, STAGED } from "./row/held_row.ts";

/** A workgroup of matmul_tensor_few.wgsl. No number of these changes a bit of what it computes. */
export interface FewTile {
  /** Tiles of the unit's m outputs. */
  readonly columns: number;
  /** Numbers of k that are brought at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
  /**
   * Whether a stage's loads stand in branches, which compilers move no load out of: fewer registers, and so more
   * workgroups at once, than in one run of instructions, where the steps of a stage are a loop.
   */
  readonly branched: boolean;
}

type FewMatmul = TensorMatmul<FewTile> & {
  /** How x of one row comes to workgroup memory whole; default as it is, stage by stage. */
  readonly hold?: HeldRow | undefined;
};

/** Most rows that the kernel is for. */
export function fewRows({ n }: MatrixUnit): number {
  return n / 2;
}

/** The fewest columns of a unit that hold hi and lo of the rows. */
function columnsFor({ n, narrow = n }: MatrixUnit, rows: number): number {
  return rows <= narrow / 2 ? narrow : n;
}

/** Numbers that its text names with a dollar. @param held eights of x that are held; 0: x comes stage by stage. */
function countsOf(
  unit: MatrixUnit,
  { columns, stage, ahead, branched }: FewTile,
  { rows, ragged, vec8s = 1, held = 0 }: {
    readonly rows: number;
    readonly ragged: boolean;
    readonly vec8s?: number;
    readonly held?: number;
  },
) {
  const { m, k, lanes } = unit;
  const n = columnsFor(unit, rows);
  const [CHUNKS, TILE_COLS, SUM_WORDS] = [stage / 8, columns * m, m * n / 4];
  const X_LOADS = Math.ceil(rows * CHUNKS / lanes);
  return {
    ...{ X_ROWS: rows, OWN_C: columns, STAGE: stage, AHEAD: ahead },
    ...{ CHUNKS, TILE_COLS, SUM_WORDS },
    ...{ LANES: lanes, UNIT_M: m, UNIT_N: n, UNIT_K: k, UNIT_HALF: m / 2 },
    ...{ HELD: Number(held > 0), STAGED: Number(held === 0) },
    ...{ W_LOADS: Math.ceil(TILE_COLS * CHUNKS / vec8s / lanes), X_LOADS },
    W_PART: Number(TILE_COLS * CHUNKS / vec8s % lanes !== 0),
    X_PART: Number(X_LOADS * lanes > n / 2 * CHUNKS),
    WEIGHT_WORDS: Math.max(TILE_COLS * (CHUNKS + 1), columns * SUM_WORDS),
    // Held, eights of hi and of lo take turns, n and n; the last columns of a tile reach behind them.
    X_WORDS: held > 0 ? 2 * n * (Math.ceil(held / n) + 1) : n * (CHUNKS + 1),
    TURNS: Math.ceil(rows * columns * m / 2 / lanes),
    ...{ RAGGED: Number(ragged), BRANCHED: Number(branched), STRAIGHT: Number(!branched) },
    ...{ STEPS: stage / k, OWN_STEPS: branched ? stage / k : 1 },
  };
}

/** Whether an adapter can run a workgroup. @param held eights of x that it holds, besides what brings them. */
export function fewFits(
  unit: MatrixUnit,
  tile: FewTile,
  { maxComputeWorkgroupStorageSize }: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { rows, held = 0 }: { readonly rows: number; readonly held?: number },
): boolean {
  const { WEIGHT_WORDS, X_WORDS } = countsOf(unit, tile, { rows, ragged: true, held });
  return tile.stage % unit.k === 0 && unit.lanes % (tile.columns * unit.m / 2) === 0 &&
    16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize;
}

const kernels = new Map<string, Kernel>();

function fewKernel(of: FewMatmul, epilogue: Epilogue): Kernel {
  const { unit, tile, rows, matrix, splitK = 1, hold, paired = false } = of;
  const format = formatOf(of);
  const { m, k, lanes } = unit;
  const { columns, stage, ahead, branched } = tile;
  const range = matrix.cols / splitK;
  const held = hold ? range / 8 : 0;
  // In branches, one more costs nothing.
  const ragged = branched || range % (stage * ahead) !== 0;
  const loads = branched ? "branched" : ragged ? "ragged" : "straight";
  const counts = countsOf(unit, tile, { rows, ragged, vec8s: format.counts.VEC8S, held });
  const numbers = [m, counts.UNIT_N, k, lanes, rows, columns, stage, ahead, loads];
  const kind = `${format.name}${paired ? "_paired" : ""}`;
  const holds = hold ? `_${held}_${hold.name}` : "";
  const name = `matmul_tensor_few${kind}_${epilogue.name}_${numbers.join("_")}${holds}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/matmul_tensor_few", {
      slots: { ...unitsSlots(epilogue), ...format.slots, ...(hold?.slots ?? STAGED) },
      counts: {
        ...counts,
        ...{ PAIRED: Number(paired), UNPAIRED: Number(!paired) },
        ...hold ? { ...hold.counts({ threads: lanes }), ROWS: 1, THREADS: lanes } : {},
        ...format.counts,
        ...preparedCounts(epilogue),
        ...epilogue.counts,
      },
    });
    const { bindings, constants } = declared(format, epilogue);
    return kernel(name, code, {
      bindings: hold ? heldBindings(bindings, hold) : bindings,
      constants: [...constants, ...Object.keys(hold?.constants ?? {})],
    });
  });
}

/** Bound in the order of their numbers: those of a hold before the scales that an epilogue notes. */
function heldBindings(bindings: readonly string[], { buffers }: HeldRow): string[] {
  const last = ["noted", "w_scales"].filter((binding) => bindings.includes(binding));
  const first = bindings.filter((binding) => !last.includes(binding) && binding !== "x_scales");
  const { lowered, ...held } = buffers;
  return [...first, ...Object.keys(held), ...last, ...lowered ? ["lowered"] : []];
}

/** Records what `matmulTensor` does, to the bit, for at most `fewRows` rows. */
export function matmulTensorFew(buffers: TensorBuffers, of: FewMatmul): Dispatch {
  const { unit, tile, rows, matrix: { cols }, shard, splitK = 1, hold, label } = of;
  if (cols % (tile.stage * splitK) !== 0 || rows > fewRows(unit) || hold && rows > 1) {
    throw new Error(`${label}: ${rows} rows, ${cols} columns in ${splitK} ranges`);
  }
  return tensorDispatch(fewKernel(of, of.epilogue ?? PLAIN.store), buffers, {
    of,
    workgroups: [1, Math.ceil(shard.rows / (tile.columns * unit.m)), splitK],
    hold,
  });
}
