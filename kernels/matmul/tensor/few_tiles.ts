/** Which workgroups matmuls of few rows on matrix units have. None of it touches a bit of the result. */
import { isQuantized, type TensorLimits, type WeightFormat } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { fewFits, fewRows, type FewTile } from "./matmul_tensor_few.ts";

/** Of the first of which there are enough workgroups, which have so many loads on their way together. */
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
  // 8B's qkv takes 18.3 us, in branches 24.8; shorter ranges take less in branches.
  { tile: { columns: 1, stage: 256, ahead: 2, branched: false }, enough: 0, range: 4096 },
  { tile: { columns: 1, stage: 256, ahead: 2, branched: true }, enough: 0 },
];

/** Of more rows: subgroups share x, so that caches have less to give. */
const ROWS: readonly Candidate[] = [
  { tile: shared(2, { columns: 2, stage: 64 }), enough: 1500 },
  { tile: shared(2, { columns: 1, stage: 64 }), enough: 800 },
  { tile: shared(4, { columns: 1, stage: 128 }), enough: 200 },
  // As many as an H200 has multiprocessors: 8B's qkv.
  { tile: shared(3, { columns: 1, stage: 256 }), enough: 100, most: 132, range: 4096 },
  { tile: { columns: 1, stage: 128, ahead: 2, branched: false }, enough: 0 },
];

/** Of 9 to 16 rows; where there are not enough workgroups it is matmul_tensor.wgsl. */
const WIDE: readonly Candidate[] = [
  { tile: shared(4, { columns: 2, stage: 64 }), enough: 200 },
];

function shared(subgroups: number, tile: Pick<FewTile, "columns" | "stage">): FewTile {
  return { subgroups, ...tile, ahead: 2, branched: false };
}

/** Of quantized weights. */
const QUANTIZED: readonly Candidate[] = [
  { tile: { columns: 2, stage: 64, ahead: 2, branched: false }, enough: 800 },
  // 8B's down, but not its o: the longer text costs its neighbours more than it saves.
  { tile: { columns: 2, stage: 64, ahead: 4, branched: false }, enough: 400, range: 2048 },
  { tile: { columns: 2, stage: 64, ahead: 2, branched: false }, enough: 400 },
  { tile: { columns: 1, stage: 128, ahead: 2, branched: false }, enough: 0 },
];

/** Where x is held: stages of 256 take as much longer as the norm of its own saves. */
const HELD: FewTile = { columns: 1, stage: 128, ahead: 2, branched: true };

/** Where the range has no such stages. */
const ODD: readonly FewTile[] = [HELD, { ...HELD, stage: 64 }];

/** What every range of k divides into, see LEAST_STAGE; for the subgroups of a processor. */
const LEAST: FewTile = { columns: 1, stage: 32, ahead: 1, branched: true };

/** Fewer lanes has a processor's subgroup. */
const LEAST_LANES = 16;

/**
 * The tile for `rows` rows of x and a shard of `columns` outputs, `range` of k at a time; undefined for more rows,
 * or where there is no room.
 *
 * @param held whether x, one row, is whole in workgroup memory before the first stage.
 */
export function fewTile(
  unit: MatrixUnit,
  limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { format = "bf16", rows, columns, range, splitK, held = false }: {
    readonly format?: WeightFormat;
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
    readonly held?: boolean;
  },
): FewTile | undefined {
  const kept = { rows, held: held ? range / 8 : 0 };
  const fits = (tile: FewTile) => range % tile.stage === 0 && fewFits(unit, tile, limits, kept);
  if (rows > fewRows(unit) || !fits(LEAST)) return undefined;
  const wide = rows > unit.n / 2;
  if (unit.lanes < LEAST_LANES) return wide ? undefined : LEAST;
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
  const first = held ? HELD : found?.tile;
  const tile = [...first ? [first] : [], ...ODD].find(fits) ?? LEAST;
  // Where the last turn of the loop has fewer stages they are in branches anyway, and straight loads cost a quarter
  // more.
  return fills(tile) ? tile : { ...tile, branched: true };
}

function candidatesOf(format: WeightFormat, rows: number, wide: boolean): readonly Candidate[] {
  if (rows === 1) return ONE_ROW;
  if (isQuantized(format)) return wide ? [] : QUANTIZED;
  return wide ? WIDE : ROWS;
}
