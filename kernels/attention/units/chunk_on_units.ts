/** Attention over many rows of one slot on matrix units: its keys and values are converted to f16 numbers once. */
import { ALIGNMENT } from "../../../src/gpu/arena.ts";
import { bytesOf, type Dispatch, dispatch, type Operand } from "../../../src/gpu/kernel.ts";
import { KV_BYTES } from "../../../src/gpu/kv.ts";
import type { AttentionUnits } from "../../../src/gpu/matrices_on_units.ts";
import {
  type AttentionBuffers,
  type AttentionShape,
  cellWork,
  fromRow,
  scoreConstants,
  windowOf,
} from "../attention.ts";
import { PAGE } from "../../lib/rows.ts";
import { groupOf, launchedSplits } from "../splits.ts";
import { ALIGNED_ROWS, alignedRows, from, rowBlock } from "../../lib/row_blocks.ts";
import { MULTIPROCESSORS } from "../../lib/h200.ts";
import type { Heads } from "../../lib/heads.ts";
import { combined } from "./combine_units.ts";
import { type Block, cellsOf, lowOf, SEGMENT_CELLS } from "./units_kernels.ts";
import { chunkFits, type ChunkTile, chunkUnitsKernel, halveCellsKernel } from "./chunk_kernels.ts";

/** Queries of a workgroup. */
const QUERIES = 64;
/** Most dims of a head whose values and sums pass through workgroup memory at once. */
const WHOLE_DIM = 80;
/** Rows from which converting all keys and values to f16 once is less work than doing it in every workgroup. */
const CHUNK_ROWS = 64;
/** Workgroups of chunk_units.wgsl that a large GPU runs at once. */
const AT_ONCE = 2 * MULTIPROCESSORS;
/** Largest share of that room that may stay empty where each workgroup takes all cells. */
const WASTE = 0.05;

type Sizes = Pick<Heads, "kvHeads" | "headDim" | "tablePages" | "kvDtype">;

/** Cells of a head that there is room for: whole splits. */
function roomOf({ tablePages }: Sizes, units: AttentionUnits): number {
  return Math.ceil(tablePages * PAGE / cellsOf(units)) * cellsOf(units);
}

/** Segments that there is room for. */
function segmentsOf({ tablePages }: Pick<Sizes, "tablePages">): number {
  return Math.ceil(tablePages * PAGE / SEGMENT_CELLS);
}

/** Bytes of keys or values, and of their units. */
function bytesEach(heads: Sizes, units: AttentionUnits): readonly [halves: number, units: number] {
  const { KV_LOW } = lowOf(heads, units);
  const cells = heads.kvHeads * roomOf(heads, units);
  const aligned = (bytes: number) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
  return [aligned(2 * (1 + KV_LOW) * heads.headDim * cells), aligned(2 * 4 * cells)];
}

/** The workgroup that the rule chooses: two fit on a multiprocessor of an H200. */
export function chunkTile(
  shape: Heads & Pick<AttentionShape, "perSlot">,
  units: AttentionUnits,
  span: number,
): ChunkTile {
  const { heads, kvHeads, perSlot } = shape;
  const group = groupOf(heads / kvHeads, QUERIES);
  const { KV_LOW } = lowOf(shape, units);
  const tile = Math.min(perSlot, Math.floor(QUERIES / group));
  const halved = shape.headDim > WHOLE_DIM && shape.headDim % 32 === 0;
  const parts = halved ? 2 : 1;
  const keyParts = halved && KV_LOW ? 2 : 1;
  const workgroups = Math.ceil(perSlot / tile) * heads / group;
  const rounds = Math.ceil(workgroups / AT_ONCE);
  const direct = segmentsOf(shape) === 1 || workgroups >= (1 - WASTE) * rounds * AT_ONCE;
  const rest = { group, tile, span, direct, keyParts, parts, queries: QUERIES };
  // Narrow subgroups take too few products at a time.
  const columns = units.unit.lanes < 32 ? 4 : 1;
  const divided = { ...rest, columns };
  return chunkFits(shape, units, divided) ? divided : { ...rest, columns: 1 };
}

/**
 * f32 words that a slot's keys and values take as f16 numbers, for chunks of `rows` rows; 0 if rows are too few to
 * convert them, or cells too many for one binding.
 */
export function halvesWords(heads: Heads, rows: number, units: AttentionUnits): number {
  const { maxStorageBufferBindingSize = Infinity } = units.limits;
  const [halves, scales] = bytesEach(heads, units);
  const bytes = 2 * halves + scales;
  const fits = chunkFits(heads, units, chunkTile({ ...heads, perSlot: rows }, units, 1)) &&
    bytes <= maxStorageBufferBindingSize;
  return fits && rows >= CHUNK_ROWS ? bytes / 4 : 0;
}

/** The scratch buffer in which keys and values are converted to f16 once; undefined where they are not. */
export function halvesOf(
  { partial: { halves } }: AttentionBuffers,
  shape: AttentionShape,
  units: AttentionUnits,
): Operand | undefined {
  const words = halvesWords(shape, shape.count, units);
  const taken = shape.count === shape.perSlot && !shape.paths && words > 0;
  return taken && halves && 4 * words <= bytesOf(halves) ? halves : undefined;
}

function cellsIn(halves: Operand, heads: Sizes, units: AttentionUnits) {
  const [bytes] = bytesEach(heads, units);
  return {
    k_halves: { ...halves, size: bytes },
    v_halves: { ...from(halves, bytes), size: bytes },
    units: from(halves, 2 * bytes),
  };
}

/** Chooses the workgroup for these rows, with segments of `span` splits. */
type ChooseChunk = (shape: AttentionShape, units: AttentionUnits, span: number) => ChunkTile;

/**
 * Records attention of `count` rows of one slot, without paths.
 *
 * @param halves f32 words as `halvesWords` says.
 * @param choose replaces the rule that chooses workgroups; the bits stay the same.
 */
export function chunkOnUnits(
  buffers: AttentionBuffers,
  shape: AttentionShape,
  { units, halves, choose = chunkTile }: {
    readonly units: AttentionUnits;
    readonly halves: Operand;
    readonly choose?: ChooseChunk;
  },
): Dispatch[] {
  const cells = cellsIn(halves, shape, units);
  const halved = halveCells(buffers, shape, { units, cells });
  const { heads, headDim } = shape;
  const { sums, stats } = buffers.partial;
  const span = SEGMENT_CELLS / cellsOf(units);
  const whole = choose(shape, units, span);
  if (whole.direct && !buffers.scales && !buffers.sinks) {
    const of = { ...shape, firstRow: 0, firstScale: 0 };
    return [halved, partSums(buffers, of, { units, cells, tile: whole, kept: 1 })];
  }
  const kept = segmentsOf(shape);
  const room = Math.min(bytesOf(stats) / 8, bytesOf(sums) / 4 / headDim) / (heads * kept);
  const block = rowBlock(shape, Math.floor(room), alignedRows(4 * heads * headDim));
  const blocks = Array.from({ length: Math.ceil(shape.count / block.count) }, (_, i) => {
    const first = i * block.count;
    const rows = Math.min(block.count, shape.count - first);
    const of: Block = {
      ...shape,
      firstRow: first % ALIGNED_ROWS,
      firstScale: first,
      count: rows,
      perSlot: rows,
    };
    const rowsFrom = fromRow(buffers, shape, first);
    return [
      partSums(rowsFrom, of, {
        units,
        cells,
        tile: { ...choose(of, units, span), direct: false },
        kept,
      }),
      combined(rowsFrom, of, { cells: SEGMENT_CELLS, kept }),
    ];
  });
  return [halved, ...blocks.flat()];
}

type Cells = ReturnType<typeof cellsIn>;

function halveCells(
  { keys, values, rows, pages }: AttentionBuffers,
  shape: AttentionShape,
  { units, cells }: { readonly units: AttentionUnits; readonly cells: Cells },
): Dispatch {
  const { kvHeads, headDim, kvDtype, tablePages, count, window } = shape;
  const { KV_LOW } = lowOf(shape, units);
  const room = roomOf(shape, units);
  return dispatch(halveCellsKernel(shape, units), {
    buffers: { keys, values, rows, pages, ...cells },
    constants: {
      KV_HEADS: kvHeads,
      TABLE_PAGES: tablePages,
      COUNT: count,
      ROOM: room,
      WINDOW: windowOf({ window }),
    },
    workgroups: [kvHeads, 1, room / cellsOf(units)],
    cellsEach: cellsOf(units),
    label: `${shape.label}.halves`,
    work: {
      bytes: 0,
      flops: 0,
      context: {
        bytesPerCell: 2 * kvHeads * headDim * (KV_BYTES[kvDtype] + 2 * (1 + KV_LOW)),
        flopsPerCell: 0,
        window,
      },
    },
  });
}

function partSums(
  { q, rows, out, partial: { sums, stats } }: AttentionBuffers,
  shape: Block,
  { units, cells, tile, kept }: {
    readonly units: AttentionUnits;
    readonly cells: Cells;
    readonly tile: ChunkTile;
    readonly kept: number;
  },
): Dispatch {
  const { heads, headDim, kvHeads, perSlot } = shape;
  const { group, span, direct } = tile;
  const tiles = Math.ceil(perSlot / tile.tile);
  const each = cellsOf(units) * span;
  return dispatch(chunkUnitsKernel(shape, units, tile), {
    buffers: { q, ...cells, rows, ...direct ? { out } : { sums, stats } },
    constants: {
      KV_HEADS: kvHeads,
      HEAD_TILES: heads / kvHeads / group,
      LAST: perSlot - (tiles - 1) * tile.tile,
      FIRST_ROW: shape.firstRow,
      ROOM: roomOf(shape, units),
      ...direct ? {} : { KEPT: kept },
      ...scoreConstants(shape),
    },
    workgroups: [
      tiles,
      heads / group,
      launchedSplits(kept, shape, { tile: tile.tile, cells: each }),
    ],
    cellsEach: each,
    label: shape.label,
    work: cellWork(shape, 0, direct ? 0 : 4 * perSlot * heads * (headDim + 2) / each),
  });
}
