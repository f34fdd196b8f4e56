import { CHUNKS, type Matrix, MOST_SPLITS, type Tuning } from "../src/gpu/matrix.ts";

/** How a matmul of some rows is launched. None of it touches a bit of the result. */
export type MatmulShape =
  | { readonly kind: "cached"; readonly rows: number }
  | {
    readonly kind: "staged";
    readonly rows: number;
    /** Eights of k that pass through workgroup memory at a time. */
    readonly stage: number;
  };

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

/**
 * The launch of `rows` rows in tiles of `shape.rows`: staged on hardware where the width divides into
 * stages.
 */
export function matmulShape(
  matrix: Matrix,
  { rows, splits, tuning }: {
    readonly rows: number;
    readonly splits: number;
    readonly tuning: Tuning;
  },
): MatmulShape {
  const cached = { kind: "cached", rows: evenTile(rows) } as const;
  if (tuning.software) return cached;
  const even = rows <= tuning.stagedRows ? rows : evenTile(rows);
  const tile = STAGED_ROWS.find((whole) => whole >= even) ?? even;
  const range = matrix.cols / 8 / splits;
  const raw = CHUNKS[matrix.format] * matrix.lanes;
  const stage = STAGES.find((eights) =>
    range % eights === 0 && eights % raw === 0 && eights / raw <= MOST_STEPS
  );
  return stage ? { kind: "staged", rows: tile, stage } : cached;
}

/** Rows of x a workgroup takes, so that the tiles of `rows` are as even as can be. */
function evenTile(rows: number): number {
  return Math.ceil(rows / Math.ceil(rows / TILE_ROWS));
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
