/** Which workgroups matmuls of few rows on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { fewFits, fewRows, type FewTile } from "./matmul_tensor_few.ts";

/** Of the first of which there are enough workgroups, which have so many loads on their way together. */
interface Candidate {
  readonly tile: FewTile;
  readonly enough: number;
  /** Shortest range of k that it is for; default any. */
  readonly range?: number;
}

const ONE_ROW: readonly Candidate[] = [
  { tile: { columns: 2, stage: 64, ahead: 2, branched: false }, enough: 800 },
  { tile: { columns: 2, stage: 128, ahead: 2, branched: false }, enough: 400 },
  { tile: { columns: 1, stage: 128, ahead: 2, branched: true }, enough: 400 },
  // 8B's qkv takes 18.3 us, in branches 24.8; shorter ranges take less in branches.
  { tile: { columns: 1, stage: 256, ahead: 2, branched: false }, enough: 0, range: 4096 },
  { tile: { columns: 1, stage: 256, ahead: 2, branched: true }, enough: 0 },
];

/** Of more rows: what comes of x leaves less room. */
const ROWS: readonly Candidate[] = [
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
  { rows, columns, range, splitK, held = false }: {
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
  if (unit.lanes < LEAST_LANES) return LEAST;
  const workgroups = ({ columns: tiles }: FewTile) =>
    Math.ceil(columns / (tiles * unit.m)) * splitK;
  const candidates = rows === 1 ? ONE_ROW : ROWS;
  const found = candidates.find(({ tile, enough, range: least = 0 }) =>
    workgroups(tile) >= enough && range >= least
  );
  const first = held ? HELD : found?.tile;
  const tile = [...first ? [first] : [], ...ODD].find(fits) ?? LEAST;
  // Where the last turn of the loop has fewer stages they are in branches anyway, and straight loads cost a quarter more.
  return range % (tile.stage * tile.ahead) === 0 ? tile : { ...tile, branched: true };
}
