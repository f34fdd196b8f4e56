/**
 * The workgroup tiles of matmuls on matrix units for the rows of rounds, up to four tiles of a unit's rows. No choice
 * changes a bit of the result.
 */
import type { TensorLimits } from "../../../src/gpu/matrices_on_units.ts";
import { isQuantized, type WeightFormat } from "../../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { MULTIPROCESSORS } from "../../lib/h200.ts";
import { MIN_LANES } from "./common.ts";
import { fitsTile, type TensorTile, tileSize } from "./matmul_tensor.ts";

/** A tile and what it takes on an H200. */
interface Timed {
  readonly tile: TensorTile;
  /**
   * Microseconds for 4,096 numbers of k with one workgroup on a multiprocessor, with two, ... up to as many as fit: the
   * workgroups on one multiprocessor share 48 KiB of workgroup memory, whatever one alone may have.
   */
  readonly us: readonly number[];
  /** Shortest range of k that it is for; default any. */
  readonly range?: number;
  /** Whether it is for quantized weights, too; default true. */
  readonly quantized?: boolean;
}

/** A tile with two groups of subgroups, which take turns to load a stage. */
function inTurn(
  grid: TensorTile["grid"],
  own: TensorTile["own"],
  stage: number,
  early = true,
): TensorTile {
  const subgroups = Math.max(4, 2 * Math.ceil(grid[0] * grid[1] / 2));
  return { subgroups, grid, own, stage, ahead: 2, early, inTurn: true };
}

/**
 * Tiles of 16, 32, 48 and 64 rows of x as one f16 number: the fastest that lab/units/tiles.ts found for their
 * columns, with its times (`--table`) for x that is f16 already.
 */
export const HALF_ROUNDS: readonly Timed[] = [
  {
    us: [17.4, 18.8, 21.2, 23.8],
    tile: { subgroups: 4, grid: [1, 1], own: [1, 1], stage: 128, ahead: 2 },
  },
  { us: [20.1, 28.9], tile: inTurn([1, 3], [1, 1], 128) },
  { us: [23.2, 36.5], tile: inTurn([1, 4], [1, 1], 128) },
  { us: [31.6, 41.3, 53.8, 68], tile: inTurn([1, 4], [1, 1], 64) },
  { us: [39.7, 61.6], tile: inTurn([1, 7], [1, 1], 64) },
  {
    us: [20.9, 27.4],
    tile: { subgroups: 4, grid: [2, 2], own: [1, 1], stage: 128, ahead: 2, early: true },
  },
  { us: [22.3, 33.7], tile: inTurn([2, 3], [1, 1], 128, false) },
  { us: [25.5], tile: inTurn([2, 4], [1, 1], 128, false) },
  { us: [33.3, 43.6, 56.6], tile: inTurn([1, 4], [2, 1], 64) },
  { us: [31.6], tile: inTurn([2, 3], [1, 2], 128, false) },
  { us: [35.1], tile: inTurn([1, 7], [2, 1], 128, false) },
  { us: [38.6], tile: inTurn([2, 4], [1, 2], 128, false) },
  { us: [45, 71.8], tile: inTurn([2, 4], [1, 2], 64) },
  { us: [66.8], tile: inTurn([1, 7], [2, 2], 64) },
  { us: [26.5], tile: inTurn([3, 3], [1, 1], 128, false) },
  { us: [28.4], tile: inTurn([3, 2], [1, 2], 128, false) },
  { us: [35.8], tile: inTurn([3, 2], [1, 3], 128, false) },
  {
    us: [46.4],
    tile: { subgroups: 6, grid: [3, 2], own: [1, 4], stage: 128, ahead: 1, early: true },
  },
  { us: [70.3], tile: inTurn([1, 7], [3, 2], 64, false) },
  {
    us: [20.5, 27.5],
    tile: { subgroups: 4, grid: [4, 1], own: [1, 1], stage: 128, ahead: 2, early: true },
  },
  {
    us: [25],
    tile: { subgroups: 4, grid: [4, 1], own: [1, 2], stage: 128, ahead: 2, early: true },
  },
  { us: [27.5], tile: inTurn([2, 3], [2, 1], 128, false) },
  { us: [32.3], tile: inTurn([4, 2], [1, 2], 128, false) },
  { us: [44.6, 67.2], tile: inTurn([2, 3], [2, 2], 64, false) },
  {
    us: [47.9],
    tile: { subgroups: 4, grid: [4, 1], own: [1, 7], stage: 128, ahead: 1, early: true },
  },
  { us: [50.9], tile: inTurn([2, 4], [2, 2], 64) },
  { us: [74.2], tile: inTurn([1, 7], [4, 2], 64, false) },
  { us: [86.9], tile: inTurn([1, 8], [4, 2], 64) },
];

/**
 * Tiles for x as two f16 numbers, the fastest of those timed by lab/units/few.ts, and for quantized weights, whose
 * subgroups have more work to load a stage: 8B's rounds of 16, 32 and 64 rows in q8 take 0.93, 0.99 and 0.91 of the
 * time that they take with the tiles above.
 */
const ROUNDS: readonly Timed[] = [
  { us: [20, 22, 25], tile: { subgroups: 4, grid: [1, 1], own: [1, 1], stage: 128, ahead: 2 } },
  {
    // Only where every turn of the loop has all its stages.
    us: [36, 45, 55],
    tile: { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 4, early: true },
  },
  {
    us: [38, 48, 59],
    tile: { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 2, early: true },
  },
  {
    us: [55, 69],
    tile: { subgroups: 7, grid: [1, 7], own: [1, 1], stage: 64, ahead: 2, early: true },
  },
  {
    us: [58, 73],
    tile: { subgroups: 8, grid: [1, 8], own: [1, 1], stage: 64, ahead: 2, early: true },
  },
  {
    // 8B's down in q8 takes 51.5 us, with its pass, where its own tile takes 49.1.
    us: [41],
    range: 2048,
    quantized: false,
    tile: inTurn([1, 8], [1, 1], 128, false),
  },
  { us: [28], tile: { subgroups: 4, grid: [2, 2], own: [1, 1], stage: 128, ahead: 1 } },
  { us: [31], tile: inTurn([2, 3], [1, 1], 128, false) },
  {
    us: [43, 58],
    tile: { subgroups: 4, grid: [1, 4], own: [2, 1], stage: 64, ahead: 2, early: true },
  },
  { us: [51], tile: inTurn([2, 4], [1, 2], 64) },
  { us: [77], tile: inTurn([1, 7], [2, 2], 64, false) },
  { us: [82], tile: inTurn([2, 4], [1, 4], 64, false) },
  {
    us: [44],
    tile: { subgroups: 9, grid: [3, 3], own: [1, 1], stage: 128, ahead: 1, early: true },
  },
  { us: [100], tile: { subgroups: 7, grid: [1, 7], own: [3, 2], stage: 64, ahead: 1 } },
  { us: [46], range: 4096, tile: inTurn([2, 3], [2, 1], 128, false) },
  { us: [50], tile: { subgroups: 6, grid: [2, 3], own: [2, 1], stage: 128, ahead: 1 } },
  { us: [70], tile: { subgroups: 8, grid: [2, 4], own: [2, 2], stage: 64, ahead: 1, early: true } },
  {
    us: [115],
    tile: { subgroups: 8, grid: [4, 2], own: [1, 7], stage: 64, ahead: 1, joined: true },
  },
];

/** Most rows that the tiles are for. */
export function roundRows({ m }: MatrixUnit): number {
  return 4 * m;
}

/** Microseconds of `workgroups` workgroups, spread evenly over the multiprocessors. */
function usOf({ us }: Timed, workgroups: number): number {
  const each = Math.ceil(workgroups / MULTIPROCESSORS);
  const [last, rest] = [us.at(-1) ?? NaN, us[each % us.length - 1] ?? 0];
  return Math.floor(each / us.length) * last + rest;
}

/**
 * Whether a range of k is a multiple of what a turn of the loop loads: with 4 stages ahead, a shortened turn costs more
 * than the 4 stages save.
 */
function fills(range: number, { stage, ahead }: TensorTile, { lanes }: MatrixUnit): boolean {
  return ahead > 2 ? lanes >= MIN_LANES && range % (stage * ahead) === 0 : range % stage === 0;
}

/** The tile that takes least time; undefined for more rows, or where none fits the range of k or the adapter. */
export function roundTile(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { format = "bf16", rows, columns, range, splitK, low }: {
    readonly format?: WeightFormat;
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
    /** 1 if each number of x is two f16 numbers. */
    readonly low: 0 | 1;
  },
): TensorTile | undefined {
  if (rows > roundRows(unit)) return undefined;
  const timeOf = (timed: Timed) => {
    const [tileRows, tileColumns] = tileSize(unit, timed.tile);
    const workgroups = Math.ceil(rows / tileRows) * Math.ceil(columns / tileColumns) * splitK;
    return usOf(timed, workgroups);
  };
  const quantized = isQuantized(format);
  const [fastest] = (low === 1 || quantized ? ROUNDS : HALF_ROUNDS)
    .filter(({ tile, ...of }) =>
      range >= (of.range ?? 0) && (!quantized || of.quantized !== false) &&
      fills(range, tile, unit) && fitsTile(unit, tile, limits, low)
    )
    .toSorted((a, b) => timeOf(a) - timeOf(b));
  return fastest?.tile;
}
