/** The workgroup tiles of matmuls of few rows on matrix units. No choice changes a bit of the result. */
import type { TensorLimits } from "../../../src/gpu/matrices_on_units.ts";
import { isQuantized, type WeightFormat } from "../../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { MULTIPROCESSORS } from "../../lib/h200.ts";
import { MIN_LANES } from "./common.ts";
import { fewFits, fewRows, type FewTile } from "./matmul_tensor_few.ts";

/**
 * The first candidate that makes at least `enough` workgroups is taken; `enough` is how many must have loads in flight
 * to hide memory latency.
 */
interface Candidate {
  readonly tile: FewTile;
  readonly enough: number;
  /** Most workgroups that it is for; default any. */
  readonly most?: number;
  /** Shortest range of k that it is for; default any. */
  readonly range?: number;
}

const ONE_ROW: readonly Candidate[] = [
  { tile: { columns: 2, stage: 64, ahead: 2, branched: false }, enough: 768 },
  { tile: { columns: 2, stage: 128, ahead: 2, branched: false }, enough: 400 },
  { tile: { columns: 1, stage: 128, ahead: 2, branched: true }, enough: 400 },
  // 8B's qkv takes 18.3 us, with loads in branches 24.8; shorter ranges are faster with loads in branches.
  { tile: { columns: 1, stage: 256, ahead: 2, branched: false }, enough: 0, range: 4096 },
  { tile: { columns: 1, stage: 256, ahead: 2, branched: true }, enough: 0 },
];

/** For more rows: the subgroups of a workgroup share x, so that less is read from the caches. */
const ROWS: readonly Candidate[] = [
  { tile: shared(2, { columns: 2, stage: 64 }), enough: 1500 },
  { tile: shared(2, { columns: 1, stage: 64 }), enough: 800 },
  { tile: shared(4, { columns: 1, stage: 128 }), enough: 200 },
  // For 8B's qkv.
  {
    tile: shared(3, { columns: 1, stage: 256 }),
    enough: 100,
    most: MULTIPROCESSORS,
    range: 4096,
  },
  { tile: { columns: 1, stage: 128, ahead: 2, branched: false }, enough: 0 },
];

/** For 9 to 16 rows; if there are not enough workgroups, matmul_tensor.wgsl is used. */
const WIDE: readonly Candidate[] = [
  { tile: shared(4, { columns: 2, stage: 64 }), enough: 200 },
];

function shared(subgroups: number, tile: Pick<FewTile, "columns" | "stage">): FewTile {
  return { subgroups, ...tile, ahead: 2, branched: false };
}

/** For quantized weights and 2 to 8 rows. */
const QUANTIZED: readonly Candidate[] = [
  { tile: { columns: 2, stage: 64, ahead: 2, branched: false }, enough: 800 },
  // For 8B's down, but not its o, where the longer kernel costs the neighbouring kernels more than it saves.
  { tile: { columns: 2, stage: 64, ahead: 4, branched: false }, enough: 400, range: 2048 },
  { tile: { columns: 2, stage: 64, ahead: 2, branched: false }, enough: 400 },
  { tile: { columns: 1, stage: 128, ahead: 2, branched: false }, enough: 0 },
];

/**
 * The tile where x is resident in workgroup memory: stages of 256 would cost as much time as norming x in the matmul
 * saves.
 */
const RESIDENT: FewTile = { columns: 1, stage: 128, ahead: 2, branched: true };

/** Tiles for ranges of k that the chosen stage does not divide. */
const ODD: readonly FewTile[] = [RESIDENT, { ...RESIDENT, stage: 64 }];

/** The tile whose stage divides every range of k, see MIN_STAGE; also the tile for a CPU's subgroups. */
const MIN: FewTile = { columns: 1, stage: 32, ahead: 1, branched: true };

/**
 * The tile for `rows` rows of x and a shard of `columns` outputs, `range` of k at a time; undefined for more rows,
 * or where there is no room.
 *
 * @param resident whether x, one row, is whole in workgroup memory before the first stage.
 */
export function fewTile(
  unit: MatrixUnit,
  limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { format = "bf16", rows, columns, range, splitK, resident = false }: {
    readonly format?: WeightFormat;
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
    readonly resident?: boolean;
  },
): FewTile | undefined {
  const kept = { rows, resident: resident ? range / 8 : 0 };
  const fits = (tile: FewTile) => range % tile.stage === 0 && fewFits(unit, tile, limits, kept);
  if (rows > fewRows(unit) || !fits(MIN)) return undefined;
  const wide = rows > unit.n / 2;
  if (unit.lanes < MIN_LANES) return wide ? undefined : MIN;
  const fills = ({ stage, ahead }: FewTile) => range % (stage * ahead) === 0;
  const found = candidatesOf(format, rows, wide).find(
    ({ tile, enough, most = Infinity, range: least = 0 }) => {
      const { subgroups = 1 } = tile;
      const workgroups = Math.ceil(columns / (subgroups * tile.columns * unit.m)) * splitK;
      return workgroups >= enough && workgroups <= most && range >= least &&
        (subgroups === 1 || fills(tile) && fits(tile));
    },
  );
  if (wide) return found?.tile;
  const first = resident ? RESIDENT : found?.tile;
  const tile = [...first ? [first] : [], ...ODD].find(fits) ?? MIN;
  // If the last turn of the loop has fewer stages, all stages are in branches anyway, and loads outside of branches
  // cost a quarter more.
  return fills(tile) ? tile : { ...tile, branched: true };
}

function candidatesOf(format: WeightFormat, rows: number, wide: boolean): readonly Candidate[] {
  if (rows === 1) return ONE_ROW;
  if (isQuantized(format)) return wide ? [] : QUANTIZED;
  return wide ? WIDE : ROWS;
}
