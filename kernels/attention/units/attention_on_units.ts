/** Attention over heads of keys and values on matrix units: one order of sums at any number of rows. */
import { bytesOf, type Dispatch, dispatch, forCellsIn } from "../../../src/gpu/kernel.ts";
import type { AttentionUnits } from "../../../src/gpu/matrices_on_units.ts";
import {
  type AttentionBuffers,
  type AttentionShape,
  cellWork,
  fromRow,
  scoreConstants,
} from "../attention.ts";
import { groupOf, launchedSplits, pathGroups } from "../splits.ts";
import { MULTIPROCESSORS } from "../../lib/h200.ts";
import { PAGE } from "../../lib/rows.ts";
import { ALIGNED_ROWS, alignedRows, rowBlock, tileOf } from "../../lib/row_blocks.ts";
import { chunkOnUnits, chunkTile, halvesOf } from "./chunk_on_units.ts";
import { combined } from "./combine_units.ts";
import {
  type Block,
  cellsOf,
  maxThreads,
  MIN_THREADS,
  SEGMENT_CELLS,
  unitsBytes,
  unitsKernel,
  type UnitsTile,
} from "./units_kernels.ts";

/** Splits of a workgroup where rows are few and contexts are long. */
const UNMERGED_SPLITS = 4;

/** How work is divided among workgroups; no bit depends on it. */
export interface UnitsRules {
  /** Workgroups of a whole segment each that keep the GPU busy; if there are fewer, they take fewer splits each. */
  readonly enough: number;
  /**
   * Workgroups that keep the GPU busy where rows are few: contexts that make as many with UNMERGED_SPLITS splits each
   * take these, shorter contexts take one split each.
   */
  readonly enoughUnmerged: number;
  /** Chooses the workgroup for these rows, with `span` splits each. */
  choose(shape: AttentionShape, units: AttentionUnits, span: number): UnitsTile;
}

/** For a large GPU. */
export const RULES: UnitsRules = { enough: 96, enoughUnmerged: MULTIPROCESSORS, choose: unitsTile };

/** Records attention of `count` rows over the pages of their slots. */
export function attentionOnUnits(
  buffers: AttentionBuffers,
  shape: AttentionShape,
  units: AttentionUnits,
  rules: UnitsRules = RULES,
): Dispatch[] {
  const few = () => inTiles(buffers, shape, units, rules);
  const halves = halvesOf(buffers, shape, units);
  if (halves === undefined) return few();
  const { group, tile } = chunkTile(shape, units, 1);
  const workgroups = Math.ceil(shape.perSlot / tile) * shape.heads / group;
  const segments = Math.ceil(rules.enough / workgroups);
  const chunk = () => chunkOnUnits(buffers, shape, { units, halves });
  return parted(shape, (segments - 1) * SEGMENT_CELLS, few, chunk);
}

/** Each workgroup loads keys and values from where they are stored. */
function inTiles(
  buffers: AttentionBuffers,
  shape: AttentionShape,
  units: AttentionUnits,
  { enough, enoughUnmerged, choose }: UnitsRules,
): Dispatch[] {
  const inParts = (span: number, unmerged = false) =>
    inBlocks(buffers, shape, { units, span, unmerged, choose });
  const segment = SEGMENT_CELLS / cellsOf(units);
  const whole = choose(shape, units, segment);
  const tiles = shape.count / shape.perSlot * Math.ceil(shape.perSlot / whole.tile);
  const workgroups = tiles * (shape.heads / whole.group);
  if (shape.paths) return inParts(1);
  if (workgroups < enough) {
    const few = Math.floor(enoughUnmerged / workgroups) * UNMERGED_SPLITS * cellsOf(units);
    return parted(shape, few, () => inParts(1), () => inParts(UNMERGED_SPLITS, true));
  }
  if (buffers.scales || buffers.sinks) return inParts(segment);
  const direct = directly(buffers, shape, { units, tile: { ...whole, direct: true } });
  return parted(shape, SEGMENT_CELLS, () => [direct], () => inParts(segment));
}

/** `short` for contexts of at most `cells` cells, `long` for longer ones, if the block table has room for any. */
function parted(
  { tablePages }: AttentionShape,
  cells: number,
  short: () => readonly Dispatch[],
  long: () => readonly Dispatch[],
): Dispatch[] {
  if (tablePages * PAGE <= cells) return [...short()];
  if (cells <= 0) return [...long()];
  return [
    ...forCellsIn(short(), { from: 0, upTo: cells }),
    ...forCellsIn(long(), { from: cells + 1, upTo: Infinity }),
  ];
}

/** The largest tile that a slot's rows fill and workgroup memory has room for. */
export function unitsTile(shape: AttentionShape, units: AttentionUnits, span: number): UnitsTile {
  const { heads, kvHeads, perSlot } = shape;
  const room = units.limits.maxComputeWorkgroupStorageSize;
  const inRegisters = true;
  const sizes = [16, 32, 64].filter((queries) =>
    unitsBytes(shape, units, { queries, inRegisters }) <= room
  );
  const wanted = perSlot * heads / kvHeads;
  const queries = sizes.find((size) => size >= wanted) ?? sizes.at(-1) as number;
  const group = groupOf(heads / kvHeads, queries);
  const tile = tileOf(perSlot, queries / group);
  const threads = span === 1 ? MIN_THREADS : maxThreads(shape, units);
  const [unmerged, direct, early] = [false, false, span === 1];
  return { queries, group, tile, span, unmerged, direct, early, inRegisters, threads };
}

/** Records partial sums, then their combination, for as many rows at a time as the scratch buffers have room for. */
function inBlocks(
  buffers: AttentionBuffers,
  shape: AttentionShape,
  { units, span, unmerged, choose }: {
    readonly units: AttentionUnits;
    readonly span: number;
    readonly unmerged: boolean;
    readonly choose: UnitsRules["choose"];
  },
): Dispatch[] {
  const { count, heads, headDim } = shape;
  const { sums, stats } = buffers.partial;
  const cells = cellsOf(units) * (unmerged ? 1 : span);
  const kept = Math.ceil(shape.tablePages * PAGE / cells);
  const room = Math.min(bytesOf(stats) / 8, bytesOf(sums) / 4 / headDim) / (heads * kept);
  const block = rowBlock(shape, Math.floor(room), alignedRows(4 * heads * headDim));
  return Array.from({ length: Math.ceil(count / block.count) }, (_, i) => {
    const first = i * block.count;
    const rows = Math.min(block.count, count - first);
    const of: Block = {
      ...shape,
      firstRow: first % ALIGNED_ROWS,
      firstScale: first,
      count: rows,
      perSlot: Math.min(block.perSlot, rows),
    };
    const tile = unmerged ? { ...choose(of, units, 1), span, unmerged } : choose(of, units, span);
    const from = fromRow(buffers, shape, first);
    return [partSums(from, of, { units, tile, kept }), combined(from, of, { cells, kept })];
  }).flat();
}

function partSums(
  { q, keys, values, rows, pages, partial: { sums, stats } }: AttentionBuffers,
  shape: Block,
  { units, tile, kept }: {
    readonly units: AttentionUnits;
    readonly tile: UnitsTile;
    readonly kept: number;
  },
): Dispatch {
  const { heads, headDim, perSlot, paths } = shape;
  const cells = cellsOf(units) * tile.span;
  const groups = tile.unmerged ? Math.ceil(kept / tile.span) : kept;
  const groupsBefore = paths ? pathGroups(tile.tile) : 0;
  const [x, y] = tilesOf(shape, tile);
  return dispatch(unitsKernel(shape, units, tile), {
    buffers: { q, keys, values, rows, pages, sums, stats },
    constants: { ...constantsOf(shape, tile, shape.firstRow), KEPT: kept },
    workgroups: [x, y, groupsBefore + launchedSplits(groups, shape, { tile: tile.tile, cells })],
    cellsEach: cells,
    groupsBefore,
    label: shape.label,
    work: cellWork(
      shape,
      0,
      4 * perSlot * heads * (headDim + 2) / (tile.unmerged ? cellsOf(units) : cells),
    ),
  });
}

function directly(
  { q, keys, values, rows, pages, out }: AttentionBuffers,
  shape: AttentionShape,
  { units, tile }: { readonly units: AttentionUnits; readonly tile: UnitsTile },
): Dispatch {
  const [x, y] = tilesOf(shape, tile);
  return dispatch(unitsKernel(shape, units, tile), {
    buffers: { q, keys, values, rows, pages, out },
    constants: constantsOf(shape, tile, 0),
    workgroups: [x, y, 1],
    label: shape.label,
    work: cellWork(shape, 4 * shape.count * shape.heads * shape.headDim),
  });
}

function tilesOf(
  { count, perSlot, heads }: AttentionShape,
  { tile, group }: UnitsTile,
): [number, number] {
  return [count / perSlot * Math.ceil(perSlot / tile), heads / group];
}

function constantsOf(shape: AttentionShape, { tile, group }: UnitsTile, firstRow: number) {
  const { heads, kvHeads, perSlot, paths, tablePages } = shape;
  return {
    KV_HEADS: kvHeads,
    HEAD_TILES: heads / kvHeads / group,
    TABLE_PAGES: tablePages,
    // If all tiles are whole, PER_SLOT does not depend on the prompt: prompts of all lengths share a pipeline.
    PER_SLOT: perSlot % tile === 0 ? tile : perSlot,
    FIRST_ROW: firstRow,
    PATHS: Number(paths),
    ...scoreConstants(shape),
  };
}
