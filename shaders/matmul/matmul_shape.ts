import {
  CHUNKS,
  isInteger,
  type Launch,
  type Launches,
  type Matrix,
  MOST_SPLITS,
  type Shard,
  type Tuning,
  type WeightFormat,
} from "../../src/gpu/matrix.ts";

/** How a matmul of some rows is launched. None of it touches a bit of the result. */
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
    | { readonly kind: "cached" }
    | {
      /** Whether x of a stage is brought before it is multiplied or while the one before is. */
      readonly kind: "staged" | "ahead";
      readonly dots: Dots;
      /** Eights of k that pass through workgroup memory at a time. */
      readonly stage: number;
    }
  );

/**
 * How the staged kernels multiply: floats; or, for integers, activations rounded to 15 bits an eight,
 * as floats or as packed bytes, which give the same bits.
 */
export type Dots = "floats" | "whole" | "packed";

/** What a launch is chosen for. */
export interface MatmulUse {
  /** Of x. */
  readonly rows: number;
  /** See `splitsOf`. */
  readonly splits: number;
  readonly tuning: Tuning;
}

/** From how many rows on x is brought ahead: the wait for it is long beside the weights'. */
const AHEAD_ROWS = 7;

/** Eights of k in a stage whose follower is brought ahead: two of them fill workgroup memory. */
const AHEAD_STAGE = 32;

/** Most rows of x whose stages may be long. */
const FEW_ROWS = 2;

/** Raws of a lane in a stage, all on their way at once: more fill registers and compilers. */
const MOST_STEPS = 4;

/** Rows of x that tiles have where there are many. */
const TILE_ROWS = 8;

/** Columns in the shortest range of k that is worth a sum of its own. */
const SHORTEST_RANGE = 512;

/** Workgroups that fill a large GPU at one row. */
const ENOUGH_WORKGROUPS = 512;

/** The launch of a matmul: what was measured for its shape, else `defaultLaunch`. */
export function matmulShape(matrix: Matrix, use: MatmulUse): MatmulShape {
  return shapeOf(matrix, use, tunedLaunch(matrix, use) ?? defaultLaunch(matrix, use));
}

/** What a launch comes to for a number of rows. */
export function shapeOf(matrix: Matrix, use: MatmulUse, { stage, ...launch }: Launch): MatmulShape {
  const { rows, tuning } = use;
  const groups = launch.groups * tuning.lanes / matrix.lanes;
  const even = { rows: evenTile(rows, TILE_ROWS), pairs: tuning.pairs, groups };
  if (stage === 0) return { kind: "cached", ...even };
  const dots = dotsOf(matrix.format, use);
  if (rows < AHEAD_ROWS || stage !== AHEAD_STAGE) return { kind: "staged", dots, stage, ...even };
  return { kind: "ahead", dots, stage, ...aheadTile(matrix, use, launch), groups };
}

/**
 * Tiles are full, for odd ones share the loads badly. Many rows let an invocation make twice as many
 * outputs of each x that it reads, where workgroups are enough.
 */
function aheadTile(
  matrix: Matrix,
  { rows, splits, tuning }: MatmulUse,
  { groups }: Pick<Launch, "groups">,
): { readonly rows: number; readonly pairs: number } {
  const { pairs, stagedRows } = tuning;
  if (rows > TILE_ROWS && rows <= stagedRows) return { rows: stagedRows, pairs };
  const tiles = Math.ceil(rows / TILE_ROWS) * splits;
  const workgroups = matrix.rows / (4 * pairs * groups) * tiles;
  const many = rows > stagedRows && workgroups >= ENOUGH_WORKGROUPS;
  return { rows: TILE_ROWS, pairs: many ? 2 * pairs : pairs };
}

/** Workgroups that share the columns of a shard. */
export function columnWorkgroups(
  { rows }: Pick<Shard, "rows">,
  { pairs, groups }: Pick<MatmulShape, "pairs" | "groups">,
): number {
  return Math.ceil(rows / 2 / pairs / groups);
}

/** By rule: staged on hardware where the width divides into stages. */
export function defaultLaunch(matrix: Matrix, use: MatmulUse): Launch {
  const { software, groups } = use.tuning;
  const stage = software ? 0 : stagesOf(matrix, use)[0] ?? 0;
  return { stage, groups };
}

/** Few rows do not pay for unpacking integers to floats. */
function dotsOf(format: WeightFormat, { rows, tuning }: Pick<MatmulUse, "rows" | "tuning">): Dots {
  if (!isInteger(format)) return "floats";
  return rows <= tuning.packedRows ? "packed" : "whole";
}

/** Stages that the ranges of a matrix divide into, the one that suits most first. */
export function stagesOf(
  { format, cols, lanes }: Pick<Matrix, "format" | "cols" | "lanes">,
  use: MatmulUse,
): number[] {
  const range = cols / 8 / use.splits;
  const raw = CHUNKS[format] * lanes;
  return stages(format, use).filter((stage) =>
    range % stage === 0 && stage % raw === 0 && stage / raw <= MOST_STEPS
  );
}

/** Packed bytes of x leave registers for longer stages, which keep more weights on their way. */
function stages(format: WeightFormat, use: MatmulUse): number[] {
  if (use.rows >= AHEAD_ROWS) return [AHEAD_STAGE, 64];
  const long = dotsOf(format, use) === "packed" && use.rows <= FEW_ROWS;
  return long ? [128, 64, 32] : [64, 32];
}

/** What launches are measured by: matrices of equal keys are as fast as each other. */
export function shapeKey({ format, rows, cols, lanes }: Omit<Matrix, "shards">): string {
  return `${format} ${rows}x${cols}/${lanes}`;
}

function tunedLaunch(matrix: Matrix, use: MatmulUse): Launch | undefined {
  const measured = use.tuning.launches?.get(shapeKey(matrix));
  const launch = measured && nearest(measured, use.rows);
  return launch && launchStages(matrix, use).includes(launch.stage) ? launch : undefined;
}

/** Stages of all launches of a matrix; 0 = none, x comes through the cache. */
export function launchStages(matrix: Matrix, use: MatmulUse): number[] {
  const stages = stagesOf(matrix, use);
  // Through the cache, integers would be multiplied as floats: other bits than at other rows.
  return isInteger(matrix.format) && stages.length > 0 ? stages : [...stages, 0];
}

/** Of the row counts that were measured on the same side of AHEAD_ROWS the closest; of two the larger. */
function nearest(
  measured: NonNullable<ReturnType<Launches["get"]>>,
  rows: number,
): Launch | undefined {
  const counts = [...measured.keys()]
    .filter((count) => (count < AHEAD_ROWS) === (rows < AHEAD_ROWS))
    .toSorted((a, b) => Math.abs(a - rows) - Math.abs(b - rows) || b - a);
  return measured.get(counts[0] ?? 0);
}

/** Rows of x a workgroup takes, so that the tiles of `rows` are as even as can be. */
function evenTile(rows: number, most: number): number {
  return Math.ceil(rows / Math.ceil(rows / most));
}

/**
 * Equal ranges of k whose sums leave the matmul apart, to be added by what follows: as few as fill
 * the GPU at one row. Part of the order of the sum, so it is one number for every row count.
 */
export function splitsOf({ rows, cols, format, lanes }: Matrix, tuning: Tuning): number {
  if (tuning.software) return 1;
  const workgroups = rows / (2 * tuning.pairs * tuning.groups);
  const whole = (splits: number) =>
    cols / splits >= SHORTEST_RANGE && cols / 8 % (splits * 32) === 0 &&
    cols / 8 % (splits * CHUNKS[format] * lanes) === 0;
  const possible = Array.from({ length: MOST_SPLITS }, (_, i) => i + 1).filter(whole);
  return possible.find((splits) => workgroups * splits >= ENOUGH_WORKGROUPS) ??
    possible.at(-1) ?? 1;
}
