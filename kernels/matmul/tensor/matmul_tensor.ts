import { type Dispatch, type Kernel } from "../../../src/gpu/kernel.ts";
import type { TensorLimits } from "../../../src/gpu/matrices_on_units.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { type EpilogueParameters, PLAIN } from "../../lib/epilogue.ts";
import { kernelOf } from "../../shader.ts";
import {
  type EpilogueFlags,
  epilogueParameters,
  type TensorBuffers,
  tensorDispatch,
  type TensorMatmul,
} from "./common.ts";
import { formatOf, type LoadParameters } from "./loads.ts";

/** Parameters of matmul_tensor.wgsl for the unit and the tile. Rows and columns are those of outputs. */
interface TileParameters {
  /**
   * One product of the unit: its rows and columns of outputs, half of the columns, and the numbers of k that it sums.
   */
  readonly UNIT_M: number;
  readonly UNIT_N: number;
  readonly UNIT_HALF: number;
  readonly UNIT_K: number;
  /** Invocations of a subgroup. */
  readonly LANES: number;
  /** The grid of subgroups that multiply, and the grid of products that each of them makes. */
  readonly GRID_R: number;
  readonly GRID_C: number;
  readonly OWN_R: number;
  readonly OWN_C: number;
  /** Rows and columns of outputs, and invocations, of a workgroup. */
  readonly TILE_ROWS: number;
  readonly TILE_COLS: number;
  readonly THREADS: number;
  /** Vec8s of k in a stage, products along k, and stages that are loaded ahead. */
  readonly CHUNKS: number;
  readonly STEPS: number;
  readonly AHEAD: number;
  /** Whether groups of subgroups take turns to load a stage, and how many invocations load one stage. */
  readonly IN_TURN: boolean;
  readonly LOADERS: number;
  /**
   * Stages whose loads an invocation has in registers, and what a stage is multiplied by to find them: 0 with IN_TURN.
   */
  readonly SETS: number;
  readonly SET: number;
  /** Whether a stage's loads are issued before the barrier. */
  readonly EARLY: boolean;
  /** Whether two columns, or hi and lo of a row, share a line of workgroup memory. */
  readonly JOINED: boolean;
  /** See lib/row_of_chunk.wgsl. */
  readonly SPREAD: boolean;
  /** Whether a block of weights is one vec8. */
  readonly WHOLE_BLOCKS: boolean;
  /** Blocks of weights, vec8s of x and scales of columns that an invocation loads. */
  readonly W_LOADS: number;
  readonly X_LOADS: number;
  readonly COLUMN_LOADS: number;
  /**
   * Layout of workgroup memory, in vectors of eight f16: a line, where x begins, the step from hi of x to lo, and the
   * total.
   */
  readonly LINE: number;
  readonly XS: number;
  readonly LO_AT: number;
  readonly WORDS: number;
  /** In vec4s of f32: the step between rows of sums, and all sums of a product. */
  readonly SUM_PITCH: number;
  readonly TILE_SUMS: number;
  /** Pairs of outputs of a product that an invocation has. */
  readonly PARTS: number;
}

interface TensorParameters extends TileParameters, LoadParameters, EpilogueFlags {
  /** Whether the last turn of the loop over k has fewer stages. */
  readonly RAGGED: boolean;
  /** Whether x is f16 already: two numbers for each, or one if LOW is 0. */
  readonly X_IS_F16: boolean;
  /** Whether eight numbers of x are read as two vectors. */
  readonly READS_TWO: boolean;
}

const TENSOR = kernelOf<TensorParameters & EpilogueParameters>("matmul/tensor/matmul_tensor");

/** A workgroup of matmul_tensor.wgsl. None of these numbers changes a bit of the result. */
export interface TensorTile {
  readonly subgroups: number;
  /** Subgroups that multiply, rows by columns of tiles: at most `subgroups`. */
  readonly grid: readonly [rows: number, columns: number];
  /** Tiles of the unit that each of them makes. */
  readonly own: readonly [rows: number, columns: number];
  /** Numbers of k that are loaded at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
  /**
   * Whether a stage's loads are issued before the barrier that precedes the products, not after it; default false.
   */
  readonly early?: boolean;
  /**
   * Whether two columns, or hi and lo of a row, share a line of workgroup memory. That halves the padding which lets
   * lines begin in different banks. The columns must be a multiple of two tiles; default false.
   */
  readonly joined?: boolean;
  /**
   * Whether `ahead` groups of subgroups take turns to load a stage, so that the loads of each have the time of `ahead`
   * stages: a driver lets a subgroup wait for all of its outstanding loads at once. Default false: all subgroups load a
   * part of each stage.
   */
  readonly inTurn?: boolean;
}

/** Rows and columns of outputs of a workgroup. */
export function tileSize({ m, n }: MatrixUnit, { grid, own }: TensorTile): [number, number] {
  return [grid[0] * own[0] * m, grid[1] * own[1] * n];
}

/** Bytes of workgroup memory. */
export function tileBytes(unit: MatrixUnit, tile: TensorTile, LOW: 0 | 1 = 1): number {
  const { WORDS, TILE_ROWS, TILE_COLS } = countsOf(unit, tile, { VEC8S: 1, LOW });
  return 16 * WORDS + 4 * (TILE_ROWS + TILE_COLS);
}

/** Parameters of lib/row_of_chunk.wgsl for rows of `chunks`. */
export function spread(chunks: number, ...rows: number[]): { readonly SPREAD: boolean } {
  return { SPREAD: 8 % chunks === 0 && rows.every((count) => count % 8 === 0) };
}

/** Whether an adapter can run a workgroup. */
export function fitsTile(
  unit: MatrixUnit,
  tile: TensorTile,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  low: 0 | 1 = 1,
): boolean {
  const groups = tile.inTurn ? tile.ahead : 1; // of subgroups
  // A lane has as many outputs of a tile as any other.
  if (unit.m * unit.n / 2 % unit.lanes !== 0) return false;
  return tile.stage % unit.k === 0 && tile.subgroups % groups === 0 &&
    (!tile.joined || tile.grid[1] * tile.own[1] % 2 === 0) &&
    tileBytes(unit, tile, low) <= limits.maxComputeWorkgroupStorageSize &&
    tile.subgroups * unit.lanes <= limits.maxComputeInvocationsPerWorkgroup;
}

function countsOf(
  unit: MatrixUnit,
  tile: TensorTile,
  { VEC8S: vec8s, LOW }: { readonly VEC8S: number; readonly LOW: 0 | 1 } = { VEC8S: 1, LOW: 1 },
): TileParameters {
  const { subgroups, grid: [GRID_R, GRID_C], own: [OWN_R, OWN_C], stage: STAGE } = tile;
  const { ahead: AHEAD, inTurn = false } = tile;
  const [TILE_ROWS, TILE_COLS] = tileSize(unit, tile);
  const THREADS = subgroups * unit.lanes;
  const LOADERS = inTurn ? THREADS / AHEAD : THREADS;
  const CHUNKS = STAGE / 8;
  const LINE = (tile.joined ? 2 : 1) * CHUNKS + 1;
  const XS = TILE_COLS / (tile.joined ? 2 : 1) * LINE;
  const STAGED = XS + (tile.joined ? 1 : 1 + LOW) * TILE_ROWS * LINE;
  const SUM_PITCH = unit.n / 4 + 1;
  const TILE_SUMS = (1 + LOW) * unit.m * SUM_PITCH;
  return {
    GRID_R,
    GRID_C,
    OWN_R,
    OWN_C,
    AHEAD,
    TILE_ROWS,
    TILE_COLS,
    THREADS,
    CHUNKS,
    LANES: unit.lanes,
    UNIT_M: unit.m,
    UNIT_N: unit.n,
    UNIT_K: unit.k,
    UNIT_HALF: unit.n / 2,
    ...spread(CHUNKS, TILE_ROWS, TILE_COLS),
    WHOLE_BLOCKS: vec8s === 1,
    STEPS: STAGE / unit.k,
    LOADERS,
    SETS: inTurn ? 1 : AHEAD,
    SET: Number(!inTurn),
    IN_TURN: inTurn,
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / vec8s / LOADERS),
    X_LOADS: Math.ceil(TILE_ROWS * CHUNKS / LOADERS),
    COLUMN_LOADS: Math.ceil(TILE_COLS / THREADS),
    LINE,
    XS,
    LO_AT: tile.joined ? CHUNKS : TILE_ROWS * LINE,
    JOINED: tile.joined ?? false,
    EARLY: tile.early ?? false,
    SUM_PITCH,
    TILE_SUMS,
    PARTS: Math.ceil(unit.m * unit.n / 2 / unit.lanes),
    WORDS: Math.max(
      STAGED,
      GRID_R * GRID_C * TILE_SUMS,
    ),
  };
}

function tensorKernel(of: TensorMatmul<TensorTile>): Kernel {
  const { unit, tile, matrix, splitK = 1, epilogue = PLAIN.store } = of;
  const format = formatOf(of);
  const { m, n, k, lanes } = unit;
  const { subgroups, grid, own, stage, ahead } = tile;
  // The last turn of the loop may have fewer stages.
  const ragged = matrix.cols % (stage * ahead * splitK) !== 0;
  const parts = [
    ...[m, n, k, lanes, subgroups, ...grid, ...own, stage, ahead],
    ...tile.early ? ["early"] : [],
    ...tile.joined ? ["joined"] : [],
    ...tile.inTurn ? ["turn"] : [],
  ];
  const kind = `${format.name}${of.xIsF16 ? "_xf16" : ""}${ragged ? "_ragged" : ""}`;
  const name = `matmul_tensor${kind}_${epilogue.name}_${parts.join("_")}`;
  return TENSOR({
    ...countsOf(unit, tile, format.parameters),
    RAGGED: ragged,
    X_IS_F16: of.xIsF16 ?? false,
    READS_TWO: !(of.xIsF16 && format.parameters.LOW === 0),
    ...format.parameters,
    ...epilogueParameters(epilogue),
  }, { name });
}

/** Records `out = epilogue(x W^T)` of one shard as `matmul` does. */
export function matmulTensor(buffers: TensorBuffers, of: TensorMatmul<TensorTile>): Dispatch {
  const { unit, tile, rows, matrix: { cols }, shard, splitK = 1, label } = of;
  if (cols % (tile.stage * splitK) !== 0) {
    throw new Error(`${label}: ${cols} columns in ${splitK} ranges, in stages of ${tile.stage}`);
  }
  const [tileRows, tileCols] = tileSize(unit, tile);
  return tensorDispatch(tensorKernel(of), buffers, {
    of,
    // Tiles of the same columns run side by side and share the weights in the cache.
    workgroups: [Math.ceil(rows / tileRows), Math.ceil(shard.rows / tileCols), splitK],
  });
}
