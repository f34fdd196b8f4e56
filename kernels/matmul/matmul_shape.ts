import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import { type Launch, type Launches, MAX_SPLIT_K, type Tuning } from "../../src/gpu/tuning.ts";
import { BLOCK_VEC8S, isInteger, isQuantized } from "../../src/gpu/weight_format.ts";
import { lanesOf } from "./matmul_lanes.ts";
import {
  ENOUGH_WORKGROUPS,
  evenTile,
  isCut,
  isSmall,
  makesOnePair,
  MANY_WEIGHTS,
  type MatmulUse,
  MAX_SMALL_ROWS,
  type TileUse,
  tileUse,
} from "./matmul_rows.ts";
import {
  aheadOf,
  type Dots,
  dotsOf,
  FEW_ROWS,
  isResident,
  PREFETCH_ROWS,
  PREFETCH_STAGE,
  residentStages,
  residentVec8s,
  stagesOf,
  TILE_ROWS,
} from "./matmul_stages.ts";

/** How a matmul of some rows is launched. No choice changes a bit of the result. */
export type MatmulShape =
  & {
    /** Rows of x in a workgroup. */
    readonly rows: number;
    /** Output pairs of a group of lanes. */
    readonly pairs: number;
    /** Groups of the matrix's lanes in a workgroup. */
    readonly groups: number;
  }
  & (
    // matmul.wgsl, which reads x through the cache. The others are matmul_staged.wgsl, matmul_prefetch.wgsl and
    // matmul_resident.wgsl; all have its order of sums.
    | { readonly kind: "cached" }
    | {
      /**
       * Whether x of a stage is loaded right before it is multiplied, or prefetched while the stage before is
       * multiplied.
       */
      readonly kind: "staged" | "prefetch";
      readonly dots: Dots;
      /** Vec8s (8 floats) of k that pass through workgroup memory at a time. */
      readonly stage: number;
      /** Whether the last stage of a range of k is only partly filled; default false. */
      readonly part?: boolean;
      /** Whether there is workgroup memory for the sums of eight rows at once; default false. */
      readonly roomy?: boolean;
    }
    | {
      /** x of the whole range of k stays in workgroup memory. */
      readonly kind: "resident";
      readonly dots: Dots;
      /** Vec8s of the range, plus padding behind it that fills the last block of every lane. */
      readonly stage: number;
      /** Whether there is such padding; default false. */
      readonly part?: boolean;
      /** Blocks of a row of the matrix that each lane loads ahead of their use. */
      readonly ahead: number;
    }
  );

/** The shape of a launch whose x stays in workgroup memory. */
export type ResidentShape = Extract<MatmulShape, { kind: "resident" }>;

/** Longest stage, in vec8s, that tiles of two rows prefetch. */
const CUT_STAGE = 64;

/** Vec8s of a stage of one or two rows over few workgroups. */
const LONG_STAGE = 128;

/** Columns in the shortest range of k that is worth a sum of its own. */
const SHORTEST_RANGE = 512;

/** If no stage divides the ranges of k, they are multiples of so many vec8s, as matrix units need. */
const UNIT_VEC8S = 4;

/** The launch of a matmul: what was measured for its shape, else `defaultLaunch`. */
export function matmulShape(matrix: Matrix, use: MatmulUse): MatmulShape {
  return shapeOf(matrix, use, tunedLaunch(matrix, use) ?? defaultLaunch(matrix, use));
}

/** The shape of a launch at a number of rows. */
export function shapeOf(matrix: Matrix, all: MatmulUse, launch: Launch): MatmulShape {
  const use = tileUse(matrix, all);
  const { stage } = launch;
  if (isResident(matrix, use, stage)) return residentOf(matrix, all, launch);
  const even = { ...evenOf(matrix, use, launch), pairs: use.pairs };
  if (stage === 0) return { kind: "cached", ...even };
  const dots = dotsOf(matrix.format, use.tuning);
  const part = matrix.cols / 8 / use.splitK % stage !== 0;
  if (use.packed) return { kind: "staged", dots, stage, part, ...even };
  if (isCut(matrix, all) && stage <= CUT_STAGE) {
    return { kind: "prefetch", dots, stage, part, ...even };
  }
  if (use.rows < PREFETCH_ROWS || stage !== PREFETCH_STAGE) {
    // With few invocations, each would load a long stage one load after the other.
    const long = 2 * launch.groups < all.tuning.groups ? undefined : longStage(matrix, use);
    const one = launch.pairs && use.rows === 1 && !use.partial ? { pairs: launch.pairs } : {};
    // One row of packed integers prefetches its next stage where that was measured to be faster.
    const ahead = launch.prefetch && use.rows === 1 && dots === "packed";
    const kind = ahead ? "prefetch" : "staged";
    return { kind, dots, stage, part, ...even, ...one, ...long };
  }
  return { kind: "prefetch", dots, stage, part, ...even, ...prefetchTile(matrix, use, launch) };
}

/** At this number of rows a small matrix with resident x has tiles of two rows. */
const HALVED_ROWS = 4;

/**
 * Whether four rows are cut into two tiles, which read the weights at the same time. In bf16 on an H200 a layer of
 * Qwen3-0.6B then takes 40.1 us instead of 45.3, but eight rows in tiles of two take 53.8 instead of 53.1.
 */
function isHalved(matrix: Matrix, use: MatmulUse): boolean {
  return use.rows === HALVED_ROWS && !isQuantized(matrix.format) && isSmall(matrix, use);
}

/** The shape of a launch whose stage is the whole range of k. */
function residentOf(matrix: Matrix, all: MatmulUse, launch: Launch): ResidentShape {
  const use = tileUse(matrix, all);
  const of = { dots: dotsOf(matrix.format, use.tuning), ahead: aheadOf(matrix, launch.stage, use) };
  const whole = evenOf(matrix, use, launch);
  const even = isHalved(matrix, all) ? { ...whole, rows: HALVED_ROWS / 2 } : whole;
  const few = use.rows === 1 || isInteger(matrix.format) ||
    use.rows <= FEW_ROWS && matrix.rows * matrix.cols < MANY_WEIGHTS;
  const pairs = few && makesOnePair(matrix, use) ? 1 : even.pairs;
  return { kind: "resident", stage: launch.stage, ...of, ...even, pairs };
}

/**
 * One or two rows over few workgroups: each group of lanes has one pair of outputs and loads many of its weights at
 * once. On an H200 [6144, 4096] takes 14.9 us instead of 16.8 at one row and 16.2 instead of 17.9 at two, in q8 11.4
 * instead of 11.7 and 12.0 instead of 13.0.
 */
function longStage(
  matrix: Matrix,
  use: TileUse,
): { readonly pairs: number; readonly stage: number } | undefined {
  const long = matrix.cols / 8 / use.splitK % LONG_STAGE === 0;
  if (use.rows > FEW_ROWS || !long || !makesOnePair(matrix, use)) return undefined;
  return { pairs: 1, stage: LONG_STAGE };
}

function evenOf(matrix: Matrix, { rows, tuning }: TileUse, launch: Launch) {
  const groups = launch.groups * tuning.lanes / lanesOf(matrix, tuning);
  return { rows: evenTile(rows, TILE_ROWS), pairs: tuning.pairs, groups };
}

/** Up to so many rows, an invocation makes twice the outputs only with ENOUGH_OF_TWO_TILES workgroups. */
const TWO_TILES = 2 * TILE_ROWS;

/**
 * Workgroups that those rows need for it: the kernel with twice the outputs is 36 KB of machine code instead of 20, and
 * the kernels of a layer share an instruction cache of 128 KB. On an H200 a layer of Llama-3.1-8B takes 320 us at 16
 * rows, 334 if all its matmuls use that kernel.
 */
const ENOUGH_OF_TWO_TILES = 768;

/**
 * Tiles are full, because odd ones share the loads badly. With many rows and enough workgroups, an invocation makes
 * twice as many outputs from each x that it reads.
 */
function prefetchTile(
  matrix: Matrix,
  { rows, splitK, tuning }: MatmulUse,
  { groups }: Pick<Launch, "groups">,
): { readonly rows: number; readonly pairs: number; readonly roomy?: boolean } {
  const { pairs, stagedRows } = tuning;
  if (rows > TILE_ROWS && rows <= stagedRows) return { rows: stagedRows, pairs };
  const tiles = Math.ceil(rows / TILE_ROWS) * splitK;
  const workgroups = matrix.rows / (4 * pairs * groups) * tiles;
  const enough = rows <= TWO_TILES ? ENOUGH_OF_TWO_TILES : ENOUGH_WORKGROUPS;
  const many = rows > stagedRows && workgroups >= enough;
  const roomy = stagedRows > TILE_ROWS && groups <= tuning.groups;
  return { rows: TILE_ROWS, pairs: many ? 2 * pairs : pairs, roomy };
}

/**
 * The launch of a matmul that keeps x in workgroup memory, see `canBeResident`: by rule, because a launch that
 * was measured with stages may have more groups than there is workgroup memory for.
 *
 * @param widen how many times as many groups it has.
 */
export function residentShape(matrix: Matrix, use: MatmulUse, widen = 1): ResidentShape {
  const range = matrix.cols / 8 / use.splitK;
  const block = BLOCK_VEC8S[matrix.format] * lanesOf(matrix, use.tuning);
  const stage = residentVec8s(range, block);
  const { groups } = defaultLaunch(matrix, use);
  const launch = { groups: widen * groups, stage };
  const shape = residentOf(matrix, use, launch);
  const whole = stage === range ? shape : { ...shape, part: true };
  return widen > 1 || !spreads(matrix, use, shape) ? whole : {
    ...whole,
    pairs: shape.pairs / 2,
    groups: 2 * groups,
    ahead: aheadOf(matrix, stage, use, true),
  };
}

/**
 * Whether one row of a large float matrix is faster with twice the invocations, each with half the outputs and more
 * weight loads in flight: with Qwen3-30B-A3B's o a layer takes 51.5 us instead of 52.5 on an H200.
 */
function spreads(
  { format, rows: outputs, cols }: Matrix,
  { rows, splitK }: MatmulUse,
  { pairs }: MatmulShape,
): boolean {
  return rows === 1 && splitK > 1 && pairs > 1 && !isInteger(format) &&
    outputs * cols >= MANY_WEIGHTS;
}

/** Most rows whose x stays in workgroup memory by rule. */
const RESIDENT_ROWS = 6;

/** Workgroups that share the columns of a shard. */
export function columnWorkgroups(
  { rows }: Pick<Shard, "rows">,
  { pairs, groups }: Pick<MatmulShape, "pairs" | "groups">,
): number {
  return Math.ceil(rows / 2 / pairs / groups);
}

/**
 * The launch by rule. Hardware stages x where the width divides into stages; a small matrix has all of x in workgroup
 * memory, so that it is read in no more than one wait for memory.
 */
export function defaultLaunch(matrix: Matrix, all: MatmulUse): Launch {
  const { software, groups } = all.tuning;
  if (software) return { stage: 0, groups };
  const use = tileUse(matrix, all);
  const small = use.rows <= RESIDENT_ROWS && !use.packed && isSmall(matrix, use);
  const stages = [...small ? residentStages(matrix, use) : [], ...stagesOf(matrix, use)];
  return { stage: stages[0] ?? 0, groups };
}

/** The key of measured launches: matrices with equal keys are equally fast. */
export function shapeKey({ format, rows, cols, lanes }: Omit<Matrix, "shards">): string {
  return `${format} ${rows}x${cols}/${lanes}`;
}

function tunedLaunch(matrix: Matrix, use: MatmulUse): Launch | undefined {
  const tile = tileUse(matrix, use);
  const measured = use.tuning.launches?.get(shapeKey(matrix));
  const launch = measured && nearest(measured, (tile.packed ? use : tile).rows);
  return launch && launchStages(matrix, use).includes(launch.stage) ? launch : undefined;
}

/** Stages of all launches of a matrix; 0 = none, x is read through the cache. */
export function launchStages(matrix: Matrix, all: MatmulUse): number[] {
  const use = tileUse(matrix, all);
  const resident = all.rows > MAX_SMALL_ROWS ? [] : residentStages(matrix, use);
  const stages = [...new Set([...stagesOf(matrix, use), ...resident])];
  // Through the cache, integers would be multiplied as floats, with other bits than at other row counts.
  return isInteger(matrix.format) && stages.length > 0 ? stages : [...stages, 0];
}

/**
 * The launch measured at the row count closest to `rows`, on the same side of PREFETCH_ROWS; of two, the larger count.
 */
function nearest(
  measured: NonNullable<ReturnType<Launches["get"]>>,
  rows: number,
): Launch | undefined {
  const counts = [...measured.keys()]
    .filter((count) => (count < PREFETCH_ROWS) === (rows < PREFETCH_ROWS))
    .toSorted((a, b) => Math.abs(a - rows) - Math.abs(b - rows) || b - a);
  return measured.get(counts[0] ?? 0);
}

/**
 * Equal ranges of k (split-K) whose sums are stored apart and added by the next kernel: as few as fill
 * the GPU at one row. It is part of the order of the sum, so it is the same for every row count.
 */
export function splitKOf({ rows, cols, format, lanes }: Matrix, tuning: Tuning): number {
  if (tuning.software) return 1;
  const workgroups = rows / (2 * tuning.pairs * tuning.groups);
  const block = BLOCK_VEC8S[format] * lanes;
  /** Values of split-K whose ranges are multiples of each of `units`, in vec8s. */
  const ofUnits = (...units: number[]) =>
    Array.from({ length: MAX_SPLIT_K }, (_, i) => i + 1).filter((splitK) =>
      cols / splitK >= SHORTEST_RANGE && units.every((unit) => cols / 8 % (splitK * unit) === 0)
    );
  const whole = ofUnits(PREFETCH_STAGE, block);
  const possible = whole.length > 1 ? whole : ofUnits(UNIT_VEC8S, isQuantized(format) ? block : 1);
  return possible.find((splitK) => workgroups * splitK >= ENOUGH_WORKGROUPS) ??
    possible.at(-1) ?? 1;
}
