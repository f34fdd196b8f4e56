/**
 * Which workgroups matmuls on matrix units have for the rows of rounds, up to four tiles of a unit's rows. None of
 * it touches a bit of the result.
 */
import { isQuantized, type TensorLimits, type WeightFormat } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { fitsTile, type TensorTile, tileSize } from "./matmul_tensor.ts";

/** A tile and what it takes on an H200. */
interface Timed {
  readonly tile: TensorTile;
  /**
   * Microseconds for 4,096 of k, of one workgroup on a core, of two, ... as many as it has room for: those on
   * one core have 48 KiB of workgroup memory together, whatever one alone may have.
   */
  readonly us: readonly number[];
  /** Shortest range of k that it is for; default any. */
  readonly range?: number;
  /** Whether it is for quantized weights, too; default true. */
  readonly quantized?: boolean;
}

/** The fastest of those timed by lab/units/few.ts for some number of rows and columns (docs/kernels/rounds.md). */
const TIMED: readonly Timed[] = [
  {
    us: [55, 69],
    tile: { subgroups: 7, grid: [1, 7], own: [1, 1], stage: 64, ahead: 2, early: true },
  },
  {
    us: [58, 73],
    tile: { subgroups: 8, grid: [1, 8], own: [1, 1], stage: 64, ahead: 2, early: true },
  },
  {
    us: [38, 48, 59],
    tile: { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 2, early: true },
  },
  {
    // Where no turn of the loop is a part of one.
    us: [36, 45, 55],
    tile: { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 4, early: true },
  },
  { us: [20, 22, 25], tile: { subgroups: 4, grid: [1, 1], own: [1, 1], stage: 128, ahead: 2 } },
  {
    // 8B's down in q8 takes 51.5 us, with its pass, where its own tile takes 49.1.
    us: [41],
    range: 2048,
    quantized: false,
    tile: { subgroups: 8, grid: [1, 8], own: [1, 1], stage: 128, ahead: 2, inTurn: true },
  },
  {
    us: [77],
    tile: { subgroups: 8, grid: [1, 7], own: [2, 2], stage: 64, ahead: 2, inTurn: true },
  },
  {
    us: [82],
    tile: { subgroups: 8, grid: [2, 4], own: [1, 4], stage: 64, ahead: 2, inTurn: true },
  },
  {
    us: [43, 58],
    tile: { subgroups: 4, grid: [1, 4], own: [2, 1], stage: 64, ahead: 2, early: true },
  },
  {
    us: [51],
    tile: {
      subgroups: 8,
      grid: [2, 4],
      own: [1, 2],
      stage: 64,
      ahead: 2,
      early: true,
      inTurn: true,
    },
  },
  {
    us: [31],
    tile: { subgroups: 6, grid: [2, 3], own: [1, 1], stage: 128, ahead: 2, inTurn: true },
  },
  { us: [28], tile: { subgroups: 4, grid: [2, 2], own: [1, 1], stage: 128, ahead: 1 } },
  { us: [100], tile: { subgroups: 7, grid: [1, 7], own: [3, 2], stage: 64, ahead: 1 } },
  {
    us: [44],
    tile: { subgroups: 9, grid: [3, 3], own: [1, 1], stage: 128, ahead: 1, early: true },
  },
  {
    us: [115],
    tile: { subgroups: 8, grid: [4, 2], own: [1, 7], stage: 64, ahead: 1, joined: true },
  },
  { us: [70], tile: { subgroups: 8, grid: [2, 4], own: [2, 2], stage: 64, ahead: 1, early: true } },
  { us: [58], tile: { subgroups: 8, grid: [2, 4], own: [2, 1], stage: 64, ahead: 1 } },
  {
    us: [46],
    range: 4096,
    tile: { subgroups: 6, grid: [2, 3], own: [2, 1], stage: 128, ahead: 2, inTurn: true },
  },
  { us: [50], tile: { subgroups: 6, grid: [2, 3], own: [2, 1], stage: 128, ahead: 1 } },
  { us: [50, 60], tile: { subgroups: 8, grid: [4, 2], own: [1, 1], stage: 64, ahead: 1 } },
];

/** Multiprocessors of an H200. */
const CORES = 132;

/** Most rows that the tiles are for. */
export function roundRows({ m }: MatrixUnit): number {
  return 4 * m;
}

/** Of so many workgroups in turn. */
function usOf({ us }: Timed, workgroups: number): number {
  const each = Math.ceil(workgroups / CORES);
  const [last, rest] = [us.at(-1) ?? NaN, us[each % us.length - 1] ?? 0];
  return Math.floor(each / us.length) * last + rest;
}

/** Fewer lanes has a processor's subgroup, for which long texts are compiled for long. */
const LEAST_LANES = 16;

/**
 * Whether a range of k is a multiple of what the loop brings: with 4 stages ahead, a turn cut short costs more than
 * they save.
 */
function fills(range: number, { stage, ahead }: TensorTile, { lanes }: MatrixUnit): boolean {
  return ahead > 2 ? lanes >= LEAST_LANES && range % (stage * ahead) === 0 : range % stage === 0;
}

/** The tile that takes least time; undefined for more rows, or where none fits the range of k or the adapter. */
export function roundTile(
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
  if (rows > roundRows(unit)) return undefined;
  const timeOf = (timed: Timed) => {
    const [tileRows, tileColumns] = tileSize(unit, timed.tile);
    const workgroups = Math.ceil(rows / tileRows) * Math.ceil(columns / tileColumns) * splitK;
    return usOf(timed, workgroups);
  };
  const [fastest] = TIMED
    .filter(({ tile, range: least = 0, quantized = true }) =>
      range >= least && (quantized || !isQuantized(format)) && fills(range, tile, unit) &&
      fitsTile(unit, tile, limits)
    )
    .toSorted((a, b) => timeOf(a) - timeOf(b));
  return fastest?.tile;
}
