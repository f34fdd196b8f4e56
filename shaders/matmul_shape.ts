import {
  CHUNKS,
  type Launch,
  type Launches,
  type Matrix,
  MOST_SPLITS,
  type Tuning,
} from "../src/gpu/matrix.ts";

/** How a matmul of some rows is launched. None of it touches a bit of the result. */
export type MatmulShape =
  & {
    /** Rows of x in a workgroup. */
    readonly rows: number;
    /** Groups of the matrix's lanes in a workgroup. */
    readonly groups: number;
  }
  & (
    | { readonly kind: "cached" }
    | {
      readonly kind: "staged";
      /** Eights of k that pass through workgroup memory at a time. */
      readonly stage: number;
    }
  );

/** What a launch is chosen for. */
export interface MatmulUse {
  /** Of x. */
  readonly rows: number;
  /** See `splitsOf`. */
  readonly splits: number;
  readonly tuning: Tuning;
}

/** Tiles that the staged kernel is made for: those whose sums leave in equal parts. */
const STAGED_ROWS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12];

/**
 * Eights of k in a stage. Longer ones for quantized weights, whose raws hold more, were slower on an
 * H200: 59 us instead of 42 for a [28672, 4096] of q8, for want of registers.
 */
const STAGES = [64, 32];

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
  const { rows, tuning } = use;
  const { stage, groups, tile } = tunedLaunch(matrix, use) ?? defaultLaunch(matrix, use);
  const launch = { groups: groups * tuning.lanes / matrix.lanes };
  if (stage === 0) return { kind: "cached", rows: evenTile(rows, TILE_ROWS), ...launch };
  const even = rows <= tuning.stagedRows ? rows : evenTile(rows, tile);
  const whole = STAGED_ROWS.find((whole) => whole >= even) ?? even;
  return { kind: "staged", rows: whole, stage, ...launch };
}

/** By rule: staged on hardware where the width divides into stages. */
export function defaultLaunch(matrix: Matrix, { splits, tuning }: MatmulUse): Launch {
  const { software, groups } = tuning;
  const stage = software ? 0 : stagesOf(matrix, splits)[0] ?? 0;
  return { stage, groups, tile: TILE_ROWS };
}

/** Stages that the ranges of a matrix divide into, the one that suits most first. */
export function stagesOf(
  { format, cols, lanes }: Pick<Matrix, "format" | "cols" | "lanes">,
  splits: number,
): number[] {
  const range = cols / 8 / splits;
  const raw = CHUNKS[format] * lanes;
  return STAGES.filter((stage) =>
    range % stage === 0 && stage % raw === 0 && stage / raw <= MOST_STEPS
  );
}

/** What launches are measured by: matrices of equal keys are as fast as each other. */
export function shapeKey({ format, rows, cols, lanes }: Omit<Matrix, "shards">): string {
  return `${format} ${rows}x${cols}/${lanes}`;
}

function tunedLaunch(matrix: Matrix, { rows, splits, tuning }: MatmulUse): Launch | undefined {
  const measured = tuning.launches?.get(shapeKey(matrix));
  const launch = measured && nearest(measured, rows);
  if (launch === undefined || launch.stage === 0) return launch;
  return stagesOf(matrix, splits).includes(launch.stage) ? launch : undefined;
}

/** Of the row counts that were measured, the one closest to `rows`; of two, the larger. */
function nearest(
  measured: NonNullable<ReturnType<Launches["get"]>>,
  rows: number,
): Launch | undefined {
  const counts = [...measured.keys()].toSorted((a, b) =>
    Math.abs(a - rows) - Math.abs(b - rows) || b - a
  );
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
