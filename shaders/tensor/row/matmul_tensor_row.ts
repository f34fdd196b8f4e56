import { type Dispatch, type Kernel, kernel } from "../../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { PLAIN } from "../../fragments/epilogue.ts";
import { shader } from "../../shader.ts";
import {
  declared,
  type TensorBuffers,
  tensorDispatch,
  type TensorMatmul,
  unitsSlots,
} from "../common.ts";
import { formatOf } from "../loads.ts";
import { type HeldRow, STAGED } from "./held_row.ts";
import type { FewTile } from "../matmul_tensor_few.ts";

/** Columns are tiles of the unit's m outputs. */
export interface RowTile extends FewTile {
  /**
   * Whether a stage's loads stand in branches, which compilers move no load out of: fewer registers, and so more
   * workgroups at once, than in one run of instructions, where the steps of a stage are a loop.
   */
  readonly branched: boolean;
}

type RowMatmul = Omit<TensorMatmul<RowTile>, "rows"> & {
  /** How x comes to workgroup memory whole; default as it is, stage by stage. */
  readonly hold?: HeldRow | undefined;
};

/** The unit's fewest columns: half of them are the row's, as hi and as lo. */
export function rowUnit({ narrow, ...unit }: MatrixUnit): MatrixUnit {
  return { ...unit, n: narrow ?? unit.n };
}

/** Numbers that its text names with a dollar, and that of experts alone. */
export function rowCounts(
  of: MatrixUnit,
  { columns, stage, ahead, branched }: RowTile,
  { ragged, vec8s = 1, held = 0 }: {
    readonly ragged: boolean;
    readonly vec8s?: number;
    /** Eights of x that are held; 0: x comes stage by stage. */
    readonly held?: number;
  },
): Record<string, number> & { readonly WEIGHT_WORDS: number; readonly X_WORDS: number } {
  const { m, n, k, lanes } = rowUnit(of);
  const [CHUNKS, TILE_COLS, SUM_WORDS] = [stage / 8, columns * m, m * n / 4];
  const X_LOADS = Math.ceil(CHUNKS / lanes);
  return {
    ...{ OWN_C: columns, STAGE: stage, AHEAD: ahead, STEPS: stage / k },
    ...{ CHUNKS, TILE_COLS, SUM_WORDS, LANES: lanes, UNIT_M: m, UNIT_N: n, UNIT_K: k },
    ...{ UNIT_HALF: m / 2, HELD: Number(held > 0), STAGED: Number(held === 0) },
    ...{ W_LOADS: Math.ceil(TILE_COLS * CHUNKS / vec8s / lanes), X_LOADS },
    W_PART: Number(TILE_COLS * CHUNKS / vec8s % lanes !== 0),
    X_PART: Number(X_LOADS * lanes > n / 2 * CHUNKS),
    WEIGHT_WORDS: Math.max(TILE_COLS * (CHUNKS + 1), columns * SUM_WORDS),
    // Held, eights of hi and of lo take turns, n and n; the last columns of a tile reach behind them.
    X_WORDS: held > 0 ? 2 * n * (Math.ceil(held / n) + 1) : n * (CHUNKS + 1),
    ...{ RAGGED: Number(ragged), BRANCHED: Number(branched), STRAIGHT: Number(!branched) },
    OWN_STEPS: branched ? stage / k : 1,
  };
}

/** Whether an adapter can run a workgroup. @param held eights of x that it holds, besides what brings them. */
export function rowFits(
  unit: MatrixUnit,
  tile: RowTile,
  { maxComputeWorkgroupStorageSize }: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  held = 0,
): boolean {
  const { WEIGHT_WORDS, X_WORDS } = rowCounts(unit, tile, { ragged: true, held });
  return tile.stage % unit.k === 0 && unit.lanes % (tile.columns * unit.m / 2) === 0 &&
    16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize;
}

const kernels = new Map<string, Kernel>();

function rowKernel(of: RowMatmul): Kernel {
  const { unit, tile, matrix, splitK = 1, hold, epilogue = PLAIN.store } = of;
  const format = formatOf(of);
  const { m, n, k, lanes } = rowUnit(unit);
  const { columns, stage, ahead, branched } = tile;
  const held = hold ? matrix.cols / splitK / 8 : 0;
  // In branches, one more costs nothing.
  const ragged = branched || matrix.cols / splitK % (stage * ahead) !== 0;
  const loads = branched ? "branched" : ragged ? "ragged" : "straight";
  const parts = [m, n, k, lanes, columns, stage, ahead, loads];
  const holds = hold ? `_${held}_${hold.name}` : "";
  const name = `matmul_tensor_row${format.name}_${epilogue.name}_${parts.join("_")}${holds}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("tensor/row/matmul_tensor_row", {
      slots: { ...unitsSlots(epilogue), ...format.slots, ...(hold?.slots ?? STAGED) },
      counts: {
        ...rowCounts(unit, tile, { ragged, vec8s: format.counts.VEC8S, held }),
        ...hold ? { ...hold.counts({ threads: lanes }), ROWS: 1, THREADS: lanes } : {},
        ...format.counts,
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

/** Records what `matmulTensor` does, to the bit, for one row. */
export function matmulTensorRow(buffers: TensorBuffers, of: RowMatmul): Dispatch {
  const { unit, tile, matrix: { cols }, shard, splitK = 1, hold, label } = of;
  if (cols % (tile.stage * splitK) !== 0) {
    throw new Error(`${label}: ${cols} columns in ${splitK} ranges`);
  }
  return tensorDispatch(rowKernel(of), buffers, {
    of: { ...of, rows: 1 },
    workgroups: [1, Math.ceil(shard.rows / (tile.columns * unit.m)), splitK],
    hold,
  });
}
