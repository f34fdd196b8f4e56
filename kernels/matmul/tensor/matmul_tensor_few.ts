import { type Dispatch, type Kernel } from "../../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../../lib/epilogue.ts";
import { kernelOf } from "../../shader.ts";
import { formatOf } from "./loads.ts";
import {
  declared,
  epilogueParameters,
  type TensorBuffers,
  tensorDispatch,
  type TensorMatmul,
} from "./common.ts";
import type { HeldRow } from "./held_row.ts";

/** A workgroup of matmul_tensor_few.wgsl. No number of these changes a bit of what it computes. */
export interface FewTile {
  /** Side by side, sharing x; default 1. */
  readonly subgroups?: number;
  /** Tiles of the unit's m outputs, of each of them. */
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
  return n;
}

/**
 * x as columns of the right matrix, X_TILES tiles of the unit: LO_COLUMNS from hi of a row to its lo, X_PITCH eights
 * from a column to the next.
 */
function columnsOf(
  { n: most, narrow = most }: MatrixUnit,
  { rows, low, held, chunks, brought }: {
    readonly rows: number;
    readonly low: number;
    readonly held: number;
    readonly chunks: number;
    /** Eights that invocations bring of a stage, those of the rows or more. */
    readonly brought: number;
  },
) {
  const ROW_COLUMNS = 1 + low;
  const n = ROW_COLUMNS * rows <= narrow ? narrow : most;
  const X_TILES = Math.ceil(ROW_COLUMNS * rows / n);
  const counts = { UNIT_N: n, X_TILES, ROW_COLUMNS };
  if (held > 0) {
    // Eights of hi and of lo take turns, n and n; the last columns of a tile reach behind them.
    const X_WORDS = 2 * n * (Math.ceil(held / n) + 1);
    return { ...counts, LO_COLUMNS: n / 2, X_PITCH: 2, X_WORDS };
  }
  const columns = Math.max(X_TILES * n, Math.ceil(brought / chunks) * ROW_COLUMNS);
  return { ...counts, LO_COLUMNS: 1, X_PITCH: chunks + 1, X_WORDS: columns * (chunks + 1) };
}

/** Numbers that its text names with a dollar. @param held eights of x that are held; 0: x comes stage by stage. */
function countsOf(
  unit: MatrixUnit,
  { columns, stage, ahead, branched, subgroups = 1 }: FewTile,
  { rows, ragged, vec8s = 1, low = 1, held = 0 }: {
    readonly rows: number;
    readonly ragged: boolean;
    readonly vec8s?: number;
    readonly low?: number | undefined;
    readonly held?: number;
  },
) {
  const { m, k, lanes } = unit;
  const [CHUNKS, TILE_COLS, THREADS] = [stage / 8, subgroups * columns * m, subgroups * lanes];
  const X_LOADS = Math.ceil(rows * CHUNKS / THREADS);
  const x = columnsOf(unit, { rows, low, held, chunks: CHUNKS, brought: X_LOADS * THREADS });
  return {
    X_ROWS: rows,
    OWN_C: columns,
    STAGE: stage,
    AHEAD: ahead,
    CHUNKS,
    TILE_COLS,
    THREADS,
    ...x,
    LANES: lanes,
    UNIT_M: m,
    UNIT_K: k,
    UNIT_HALF: m / 2,
    HELD: held > 0,
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / vec8s / THREADS),
    X_LOADS,
    W_PART: TILE_COLS * CHUNKS / vec8s % THREADS !== 0,
    WEIGHT_WORDS: TILE_COLS * Math.max(CHUNKS + 1, x.X_TILES * x.UNIT_N / 4),
    TURNS: Math.ceil(rows * columns * m / 2 / lanes),
    RAGGED: ragged,
    BRANCHED: branched,
    STEPS: stage / k,
    OWN_STEPS: branched ? stage / k : 1,
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

function fewKernel(of: FewMatmul, epilogue: Epilogue): Kernel {
  const { unit, tile, rows, matrix, splitK = 1, hold, paired = false } = of;
  const format = formatOf(of);
  const { m, k, lanes } = unit;
  const { columns, stage, ahead, branched, subgroups = 1 } = tile;
  const range = matrix.cols / splitK;
  const held = hold ? range / 8 : 0;
  // In branches, one more costs nothing.
  const ragged = branched || range % (stage * ahead) !== 0;
  const loads = branched ? "branched" : ragged ? "ragged" : "straight";
  const { VEC8S: vec8s, LOW: low } = format.parameters;
  const counts = countsOf(unit, tile, { rows, ragged, vec8s, low, held });
  const numbers = [m, counts.UNIT_N, k, lanes, rows, columns, stage, ahead, subgroups, loads];
  const kind = `${format.name}${paired ? "_paired" : ""}`;
  const holds = hold ? `_${held}_${hold.name}` : "";
  const name = `matmul_tensor_few${kind}_${epilogue.name}_${numbers.join("_")}${holds}`;
  const { bindings, constants } = declared(format, epilogue);
  return kernelOf("matmul/tensor/matmul_tensor_few", {
    ...counts,
    PAIRED: paired,
    LOWERS: hold?.lowers !== undefined,
    ...hold ? { hold: hold.kind, HALVES: false } : {},
    ...hold ? { ...hold.parameters({ threads: lanes }), ROWS: 1 } : {},
    ...format.parameters,
    ...epilogueParameters(epilogue),
  }, {
    name,
    bindings: hold ? heldBindings(bindings, hold) : bindings,
    constants: [...constants, ...Object.keys(hold?.constants ?? {})],
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
  const { subgroups = 1, columns } = tile;
  // A held row is brought, whole, by one subgroup.
  const held = hold && (rows > 1 || subgroups > 1 || splitK > 1);
  if (cols % (tile.stage * splitK) !== 0 || rows > fewRows(unit) || held) {
    throw new Error(`${label}: ${rows} rows, ${cols} columns in ${splitK} ranges`);
  }
  return tensorDispatch(fewKernel(of, of.epilogue ?? PLAIN.store), buffers, {
    of,
    workgroups: [1, Math.ceil(shard.rows / (subgroups * columns * unit.m)), splitK],
    hold,
  });
}
