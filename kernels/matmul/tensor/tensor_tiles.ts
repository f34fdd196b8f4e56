/** Which workgroups matmuls on matrix units have. None of it touches a bit of the result. */
import {
  isQuantized,
  type TensorLimits,
  WEIGHT_BYTES,
  type WeightFormat,
} from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { fitsTile, type TensorTile, tileSize } from "./matmul_tensor.ts";
import { roundTile } from "./round_tiles.ts";

/** A tile, and beyond how many rows, in those of the unit, it is looked at. */
interface Candidate {
  readonly beyond: number;
  /** Of quantized weights x is one f16, which leaves registers; those of 4 bits take more of them. Default: all. */
  readonly of?: "floats" | "bytes";
  readonly tile: TensorTile;
}

/**
 * For the many rows of a prompt: 64 rows by 128, 96 or 160 columns, of which a multiprocessor runs two at a time.
 * `wave` is what all of them at once take, of 4,096 numbers of k, in us.
 */
const PROMPTS: readonly { readonly tile: TensorTile; readonly wave: number }[] = [
  { tile: promptTile(4), wave: 132 },
  { tile: promptTile(3), wave: 107 },
  { tile: promptTile(5), wave: 170 },
];

function promptTile(columns: number): TensorTile {
  return { subgroups: 4, grid: [2, 2], own: [2, columns], stage: 32, ahead: 1, early: true };
}

const [{ tile: PROMPT }] = PROMPTS as [(typeof PROMPTS)[number]];

/** Larger tiles first; the fastest on an H200 of those in lab/units/tensor_tiles.ts. */
const CANDIDATES: readonly Candidate[] = [
  {
    beyond: 4,
    of: "bytes",
    tile: { subgroups: 4, grid: [2, 2], own: [4, 4], stage: 32, ahead: 1 },
  },
  { beyond: 8, of: "floats", tile: PROMPT },
  { beyond: 2, tile: { subgroups: 8, grid: [2, 4], own: [2, 2], stage: 64, ahead: 1 } },
  { beyond: 2, tile: { subgroups: 8, grid: [2, 4], own: [2, 1], stage: 64, ahead: 1 } },
  { beyond: 1, tile: { subgroups: 4, grid: [1, 4], own: [2, 1], stage: 64, ahead: 2 } },
  { beyond: 0, tile: { subgroups: 8, grid: [1, 8], own: [1, 1], stage: 64, ahead: 2 } },
  { beyond: 0, tile: { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 2 } },
  { beyond: 0, tile: { subgroups: 4, grid: [1, 1], own: [1, 1], stage: 128, ahead: 2 } },
  { beyond: 0, tile: { subgroups: 4, grid: [1, 2], own: [1, 1], stage: 32, ahead: 1 } },
];

/** Workgroups that keep a large GPU busy: with one tile of rows, which waits for weights, and with more. */
const ENOUGH = { few: 192, many: 96 };

/** Workgroups that an H200 runs at once: two on each of its multiprocessors. */
const AT_ONCE = 264;

/** Ranges of k divide into stages of some tile where they are a multiple of this. */
export const LEAST_STAGE = 32;

/**
 * The tile for `rows` rows of x and a shard of `columns` outputs, `range` of k at a time; undefined where
 * the adapter has room for none.
 */
export function tensorTile(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { format = "bf16", rows, columns, range, splitK }: {
    readonly format?: WeightFormat;
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
  },
): TensorTile | undefined {
  const few = roundTile(unit, limits, { format, rows, columns, range, splitK });
  if (few) return few;
  const kind = !isQuantized(format) ? "floats" : WEIGHT_BYTES[format] === 1 ? "bytes" : "nibbles";
  const fitting = CANDIDATES.filter(({ beyond, of = kind, tile }) =>
    of === kind &&
    (rows > beyond * unit.m || beyond === 0) && range % tile.stage === 0 &&
    fitsTile(unit, tile, limits)
  ).map(({ tile }) => tile);
  const workgroups = (tile: TensorTile) => {
    const [tileRows, tileColumns] = tileSize(unit, tile);
    return Math.ceil(rows / tileRows) * Math.ceil(columns / tileColumns) * splitK;
  };
  const enough = rows > unit.m ? ENOUGH.many : ENOUGH.few;
  const most = fitting.toSorted((a, b) => workgroups(b) - workgroups(a))[0];
  const found = fitting.find((tile) => workgroups(tile) >= enough) ?? most;
  if (found !== PROMPT) return found;
  // The last wave takes nearly as long as any, however few are left.
  const time = ({ tile, wave }: (typeof PROMPTS)[number]) =>
    Math.ceil(workgroups(tile) / AT_ONCE) * wave;
  return PROMPTS.filter(({ tile }) => fitsTile(unit, tile, limits))
    .toSorted((a, b) => time(a) - time(b))[0]?.tile;
}
