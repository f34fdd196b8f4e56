/** The workgroup tiles of matmuls on matrix units. No choice changes a bit of the result. */
import type { TensorLimits } from "../../../src/gpu/matrices_on_units.ts";
import { isQuantized, type WeightFormat } from "../../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { MULTIPROCESSORS } from "../../lib/h200.ts";
import { fitsTile, type TensorTile, tileSize } from "./matmul_tensor.ts";
import { roundRows, roundTile } from "./round_tiles.ts";

/** A tile that is considered for more rows than `beyond` times those of the unit. */
interface Candidate {
  readonly beyond: number;
  /** Whether it is for quantized weights, too; default true. */
  readonly quantized?: boolean;
  readonly tile: TensorTile;
}

/** A tile for the many rows of a prompt. */
interface PromptTile {
  readonly tile: TensorTile;
  /** Microseconds that one wave of workgroups, `each` on every multiprocessor, takes for 4,096 numbers of k. */
  readonly wave: number;
  /** Workgroups that a multiprocessor of an H200 runs at once. */
  readonly each: number;
}

/** 64 rows by 128, 96 or 160 columns, of which a multiprocessor runs two at a time. */
const PROMPTS: readonly PromptTile[] = [
  { tile: promptTile([2, 2], [2, 4], 32), wave: 132, each: 2 },
  { tile: promptTile([2, 2], [2, 3], 32), wave: 107, each: 2 },
  { tile: promptTile([2, 2], [2, 5], 32), wave: 170, each: 2 },
];

/**
 * The same where x is one f16 for each number (`halfRows`), which leaves registers and workgroup memory for larger
 * tiles: a multiprocessor runs one workgroup at a time of those with more than 24 KiB of workgroup memory. Each is the
 * fastest that lab/units/tiles.ts found for one of its shapes.
 */
const HALF_PROMPTS: readonly PromptTile[] = [
  { tile: promptTile([2, 2], [4, 4], 32), wave: 124, each: 2 },
  { tile: { ...promptTile([2, 4], [4, 3], 64), ahead: 2, inTurn: true }, wave: 90, each: 1 },
  { tile: promptTile([2, 4], [4, 2], 64), wave: 71, each: 1 },
  { tile: promptTile([2, 2], [4, 5], 32), wave: 157, each: 2 },
  { tile: promptTile([2, 2], [4, 3], 32), wave: 107, each: 2 },
  { tile: promptTile([2, 2], [2, 3], 64), wave: 60, each: 2 },
];

function promptTile(
  grid: TensorTile["grid"],
  own: TensorTile["own"],
  stage: number,
): TensorTile {
  return { subgroups: grid[0] * grid[1], grid, own, stage, ahead: 1, early: true };
}

const [{ tile: PROMPT }] = PROMPTS as [PromptTile];

/** For x that is no f16 yet: larger tiles first, the fastest on an H200 of those in lab/units/tensor_tiles.ts. */
const CANDIDATES: readonly Candidate[] = [
  { beyond: 8, quantized: false, tile: PROMPT },
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

/** A range of k that is a multiple of this divides into the stages of some tile. */
export const MIN_STAGE = 32;

/**
 * The tile for `rows` rows of x and a shard of `columns` outputs, `range` of k at a time; undefined where
 * the adapter has room for none.
 */
export function tensorTile(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { format = "bf16", rows, columns, range, splitK, low, halves = false }: {
    readonly format?: WeightFormat;
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
    /** Whether x is what `halfRows` writes. */
    readonly halves?: boolean;
    /** 1 if each number of x is two f16 numbers. */
    readonly low: 0 | 1;
  },
): TensorTile | undefined {
  const few = roundTile(unit, limits, { format, rows, columns, range, splitK, low });
  if (few) return few;
  const fitting = CANDIDATES.filter(({ beyond, quantized = true, tile }) =>
    (quantized || !isQuantized(format)) &&
    (rows > beyond * unit.m || beyond === 0) && range % tile.stage === 0 &&
    fitsTile(unit, tile, limits)
  ).map(({ tile }) => tile);
  const workgroups = (tile: TensorTile) => {
    const [tileRows, tileColumns] = tileSize(unit, tile);
    return Math.ceil(rows / tileRows) * Math.ceil(columns / tileColumns) * splitK;
  };
  // The last wave takes nearly as long as any, however few workgroups are left.
  const time = ({ tile, wave, each }: PromptTile) =>
    Math.ceil(workgroups(tile) / (each * MULTIPROCESSORS)) * wave;
  const soonest = (prompts: readonly PromptTile[]) =>
    prompts.filter(({ tile }) => range % tile.stage === 0 && fitsTile(unit, tile, limits, low))
      .toSorted((a, b) => time(a) - time(b))[0]?.tile;
  const half = halves && rows > roundRows(unit) ? soonest(HALF_PROMPTS) : undefined;
  if (half) return half;
  const enough = rows > unit.m ? ENOUGH.many : ENOUGH.few;
  const most = fitting.toSorted((a, b) => workgroups(b) - workgroups(a))[0];
  const found = fitting.find((tile) => workgroups(tile) >= enough) ?? most;
  if (found !== PROMPT) return found;
  return soonest(PROMPTS);
}
