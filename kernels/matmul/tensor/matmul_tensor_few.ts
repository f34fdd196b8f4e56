import { type Dispatch, type Kernel } from "../../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../../src/gpu/matrices_on_units.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { type Epilogue, type EpilogueParameters, PLAIN } from "../../lib/epilogue.ts";
import { kernelOf } from "../../shader.ts";
import type { NormedParameters, Prologue } from "../prologue/prologue.ts";
import { formatOf, type LoadParameters } from "./loads.ts";
import {
  type EpilogueFlags,
  epilogueParameters,
  type TensorBuffers,
  tensorDispatch,
  type TensorMatmul,
} from "./common.ts";

/**
 * Parameters of matmul_tensor_few.wgsl for the unit, the tile and the rows of x, which are columns of the right matrix.
 */
interface FewTileParameters {
  /** One product of the unit: its outputs, half of them, its columns, and the numbers of k that it sums. */
  readonly UNIT_M: number;
  readonly UNIT_HALF: number;
  readonly UNIT_N: number;
  readonly UNIT_K: number;
  /** Invocations of a subgroup. */
  readonly LANES: number;
  readonly X_ROWS: number;
  /** Products that cover all columns of x, and columns per row of x: 2 if it has hi and lo. */
  readonly X_TILES: number;
  readonly ROW_COLUMNS: number;
  /** Products side by side of a subgroup. */
  readonly OWN_C: number;
  /** Outputs and invocations of a workgroup. */
  readonly TILE_COLS: number;
  readonly THREADS: number;
  /** Vec8s of k in a stage, products along k, how many of those are unrolled, and stages that are loaded ahead. */
  readonly CHUNKS: number;
  readonly STEPS: number;
  readonly OWN_STEPS: number;
  readonly AHEAD: number;
  /** Whether a stage's loads stand in branches, and whether the last turn of the loop has fewer stages. */
  readonly BRANCHED: boolean;
  readonly RAGGED: boolean;
  /** Whether x, one row, is whole in workgroup memory. */
  readonly RESIDENT: boolean;
  /** Blocks of weights and vec8s of x that an invocation loads, and whether some invocations load fewer blocks. */
  readonly W_LOADS: number;
  readonly X_LOADS: number;
  readonly W_PART: boolean;
  /**
   * Sizes in workgroup memory, in vectors of eight f16: the weights, x, and the step from a column of x to the next;
   * then the step from hi to lo, in columns.
   */
  readonly WEIGHT_WORDS: number;
  readonly X_WORDS: number;
  readonly X_PITCH: number;
  readonly LO_COLUMNS: number;
  /** Rows for which an invocation makes a pair of outputs. */
  readonly TURNS: number;
}

interface FewParameters extends FewTileParameters, LoadParameters, EpilogueFlags {
  /** Whether x is f16 already: two numbers for each, or one if LOW is 0. */
  readonly X_IS_F16: boolean;
  /** Whether eight numbers of x are read as two vectors. */
  readonly READS_TWO: boolean;
}

/** How x, one row, is normed on its way to workgroup memory. */
type HeldParameters = Omit<NormedParameters, "prologue"> & {
  /** Rows of x that are normed. */
  readonly ROWS: number;
  /** Whether the first workgroup resets the scales of other inputs to the largest. */
  readonly RESETS: boolean;
};

const FEW = kernelOf<
  FewParameters & EpilogueParameters & (HeldParameters | { readonly RESETS?: never })
>(
  "matmul/tensor/matmul_tensor_few",
);

/** A workgroup of matmul_tensor_few.wgsl. None of these numbers changes a bit of the result. */
export interface FewTile {
  /** Subgroups side by side, which share x; default 1. */
  readonly subgroups?: number;
  /** Tiles of the unit's m outputs that each subgroup makes. */
  readonly columns: number;
  /** Numbers of k that are loaded at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
  /**
   * Whether a stage's loads are in branches, out of which compilers move no load. That takes fewer registers, so that
   * more workgroups run at once, than straight-line loads, with which the steps of a stage are a loop.
   */
  readonly branched: boolean;
}

type FewMatmul = TensorMatmul<FewTile> & {
  /** How x, one row, is brought whole into workgroup memory; default: as it is, stage by stage. */
  readonly prologue?: Prologue | undefined;
};

/** Most rows that the kernel is for. */
export function fewRows({ n }: MatrixUnit): number {
  return n;
}

/**
 * x as columns of the right matrix, X_TILES tiles of the unit. The lo of a row is LO_COLUMNS behind its hi, and a
 * column begins X_PITCH vec8s behind the one before.
 */
function columnsOf(
  { n: most, narrow = most }: MatrixUnit,
  { rows, low, resident, chunks, brought }: {
    readonly rows: number;
    readonly low: number;
    readonly resident: number;
    readonly chunks: number;
    /** Vec8s of a stage that all invocations store: those of the rows, or more. */
    readonly brought: number;
  },
) {
  const ROW_COLUMNS = 1 + low;
  const n = ROW_COLUMNS * rows <= narrow ? narrow : most;
  const X_TILES = Math.ceil(ROW_COLUMNS * rows / n);
  const counts = { UNIT_N: n, X_TILES, ROW_COLUMNS };
  if (resident > 0) {
    // n vec8s of hi and n vec8s of lo alternate; the last columns of a tile reach behind them.
    const X_WORDS = 2 * n * (Math.ceil(resident / n) + 1);
    return { ...counts, LO_COLUMNS: n / 2, X_PITCH: 2, X_WORDS };
  }
  const columns = Math.max(X_TILES * n, Math.ceil(brought / chunks) * ROW_COLUMNS);
  return { ...counts, LO_COLUMNS: 1, X_PITCH: chunks + 1, X_WORDS: columns * (chunks + 1) };
}

/**
 * Parameters of matmul_tensor_few.wgsl for a tile.
 *
 * @param resident vec8s of x that are resident; 0: x comes stage by stage.
 */
function countsOf(
  unit: MatrixUnit,
  { columns, stage, ahead, branched, subgroups = 1 }: FewTile,
  { rows, ragged, vec8s = 1, low = 1, resident = 0 }: {
    readonly rows: number;
    readonly ragged: boolean;
    readonly vec8s?: number;
    readonly low?: number | undefined;
    readonly resident?: number;
  },
): FewTileParameters {
  const { m, k, lanes } = unit;
  const [CHUNKS, TILE_COLS, THREADS] = [stage / 8, subgroups * columns * m, subgroups * lanes];
  const X_LOADS = Math.ceil(rows * CHUNKS / THREADS);
  const x = columnsOf(unit, { rows, low, resident, chunks: CHUNKS, brought: X_LOADS * THREADS });
  return {
    X_ROWS: rows,
    OWN_C: columns,
    AHEAD: ahead,
    CHUNKS,
    TILE_COLS,
    THREADS,
    ...x,
    LANES: lanes,
    UNIT_M: m,
    UNIT_K: k,
    UNIT_HALF: m / 2,
    RESIDENT: resident > 0,
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

/** Whether an adapter can run a workgroup. @param resident vec8s of x that are, besides what brings them. */
export function fewFits(
  unit: MatrixUnit,
  tile: FewTile,
  { maxComputeWorkgroupStorageSize }: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { rows, resident = 0 }: { readonly rows: number; readonly resident?: number },
): boolean {
  const { WEIGHT_WORDS, X_WORDS } = countsOf(unit, tile, { rows, ragged: true, resident });
  return tile.stage % unit.k === 0 && unit.lanes % (tile.columns * unit.m / 2) === 0 &&
    16 * (WEIGHT_WORDS + X_WORDS) <= maxComputeWorkgroupStorageSize;
}

function fewKernel(of: FewMatmul, epilogue: Epilogue): Kernel {
  const { unit, tile, rows, matrix, splitK = 1, prologue, xIsF16 = false } = of;
  const format = formatOf(of);
  const { m, k, lanes } = unit;
  const { columns, stage, ahead, branched, subgroups = 1 } = tile;
  const range = matrix.cols / splitK;
  const resident = prologue ? range / 8 : 0;
  // With loads in branches, one more branch costs nothing.
  const ragged = branched || range % (stage * ahead) !== 0;
  const loads = branched ? "branched" : ragged ? "ragged" : "straight";
  const { VEC8S: vec8s, LOW: low } = format.parameters;
  const counts = countsOf(unit, tile, { rows, ragged, vec8s, low, resident });
  const numbers = [m, counts.UNIT_N, k, lanes, rows, columns, stage, ahead, subgroups, loads];
  const kind = `${format.name}${xIsF16 ? "_xf16" : ""}`;
  const prologueName = prologue ? `_${resident}_${prologue.name}` : "";
  const name = `matmul_tensor_few${kind}_${epilogue.name}_${numbers.join("_")}${prologueName}`;
  const parameters = {
    ...counts,
    X_IS_F16: xIsF16,
    READS_TWO: !(xIsF16 && low === 0),
    ...format.parameters,
    ...epilogueParameters(epilogue),
  };
  if (!prologue) return FEW(parameters, { name });
  const row = prologue.parameters({ threads: lanes, vec8s: range / 8, floats: true });
  if (row.prologue !== "normed") throw new Error(`${name}: x is ${row.prologue}`);
  const { prologue: _, ...normed } = row;
  return FEW({
    ...parameters,
    ...normed,
    ROWS: 1,
    RESETS: prologue.resets !== undefined,
  }, { name });
}

/** Records what `matmulTensor` does, to the bit, for at most `fewRows` rows. */
export function matmulTensorFew(buffers: TensorBuffers, of: FewMatmul): Dispatch {
  const { unit, tile, rows, matrix: { cols }, shard, splitK = 1, prologue, label } = of;
  const { subgroups = 1, columns } = tile;
  // A resident row is brought, whole, by one subgroup.
  const several = prologue && (rows > 1 || subgroups > 1 || splitK > 1);
  if (cols % (tile.stage * splitK) !== 0 || rows > fewRows(unit) || several) {
    throw new Error(`${label}: ${rows} rows, ${cols} columns in ${splitK} ranges`);
  }
  return tensorDispatch(fewKernel(of, of.epilogue ?? PLAIN.store), buffers, {
    of,
    workgroups: [1, Math.ceil(shard.rows / (subgroups * columns * unit.m)), splitK],
    prologue,
  });
}
