import {
  bytesOf,
  type Cost,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { combinesRows, combineSums } from "./attention_combine.ts";
import { type OwnHeads, rowSums } from "./attention_row.ts";
import { inLanes, lanesAttention } from "./attention_lanes.ts";
import { sharedSums, sharedTiles } from "./attention_shared.ts";
import { isTiled, keptSums, tiledSums } from "./attention_tiled.ts";
import {
  ALIGNED_ROWS,
  alignedRows,
  BLOCK_ROWS,
  from,
  ROW_BYTES,
  type RowBlock,
  rowBlock,
  sumsFault,
  tileOf,
} from "../lib/row_blocks.ts";
import type { Heads, OutputGates, PartialSums, PartialWords } from "../lib/heads.ts";
import { PAGE } from "../lib/rows.ts";
import { kernelOf } from "../shader.ts";
import {
  groupOf,
  SCORING,
  SPLIT_CELLS,
  type SplitBuffers,
  splitCounts,
  splitLaunch,
  type SplitParameters,
  type SplitRows,
  splitsOf,
  WIDE_HEAD,
} from "./splits.ts";

/**
 * Query heads times rows of a workgroup of attention.wgsl. Sharing keys among more pays only where there are many
 * rows: on an H200 a few rows take 14 us as workgroups of 4 queries side by side, 20 of 8, 33 of 16. See `sharedTiles`.
 */
const FEW_QUERIES = 4;
const MANY_QUERIES = 8;
/**
 * The same for a row of wide heads, which has few key-value heads: with 16 heads of 512 dims an H200 takes 21 us
 * instead of 24.
 */
const FEW_WIDE_QUERIES = 2;
const MANY_ROWS = 16;
/**
 * Rows from which combine_rows.wgsl adds the partial sums, with one invocation for each four numbers. On an H200 this
 * takes 6.4 us of a layer instead of 10.0 for 16 x 4 rows, 5.0 instead of 6.5 for 8 x 4, but 4.3 instead of 3.5 for 16.
 */
const COMBINED_ROWS = 32;

/**
 * Bytes of partial sums that attention over many rows may take before it goes block by block; fewer where a kernel
 * cannot bind so many. The sums of BLOCK_ROWS rows of a long context may take more, if the adapter binds them.
 */
const PARTIAL_BYTES = 144 << 20;

export interface AttentionBuffers {
  /** [rows, heads, headDim]; not read where `own` is. */
  readonly q: Operand;
  /**
   * If present, attention stores keys and values of the rows itself, and each row is the only one that its slot has in
   * flight. If absent, they are stored already.
   */
  readonly own?: OwnHeads | undefined;
  readonly keys: Operand;
  readonly values: Operand;
  readonly rows: Operand;
  readonly pages: Operand;
  /** [rows, heads, headDim] */
  readonly out: Operand;
  /** For as many rows as `partialWords` was asked for, or fewer. */
  readonly partial: PartialSums;
  /** f32 [rows], LARGEST_SCALE before: reduced to the scales of out's rows. See `attentionReducesScales`. */
  readonly scales?: Operand | undefined;
  /**
   * f32 [rows]: the scales of out's rows are stored here, and out is f16 for matmuls on matrix units, see `halfRows`.
   * Where `attentionStoresHalf` says so.
   */
  readonly halfScales?: Operand | undefined;
  /** A logit of each head, f32 [heads], that joins its softmax and has no value (gpt-oss). */
  readonly sinks?: Operand | undefined;
  /** See `attentionGates`. */
  readonly gate?: OutputGates | undefined;
}

/** How scores are made of dot products. */
interface Scoring {
  readonly scale: number;
  /** score = cap tanh(score / cap); undefined = as it is. */
  readonly cap?: number | undefined;
  /** Cells that a row sees, its own the last; undefined = all. */
  readonly window?: number | undefined;
}

export interface AttentionShape extends Heads, Scoring {
  readonly count: number;
  /** Rows of one slot that follow each other; divides `count`. */
  readonly perSlot: number;
  /** Whether rows may have paths; false where all are chains, which then pay nothing for it. */
  readonly paths: boolean;
  readonly tuning: Tuning;
  readonly label: string;
}

interface BlockShape extends AttentionShape {
  /** The block's first row, in `rows`. */
  readonly firstRow: number;
  /** Index of its scale in `scales`. */
  readonly firstScale: number;
  /** Many rows of a slot at once, by attention_tiled.wgsl. */
  readonly tiled: boolean;
}

type Adapter = Pick<Tuning, "software" | "bindingBytes">;

/**
 * f32 words of the partial sums of attention over at most `rows` rows; fewer rows' worth where that
 * would pass PARTIAL_BYTES, so that attention goes block by block.
 *
 * @throws UsageError if a kernel cannot bind the sums of the fewest rows that go together.
 */
export function partialWords(
  heads: Heads,
  rows: number,
  adapter: Adapter,
): PartialWords {
  return inLanes(heads, adapter) ? { sums: 4, stats: 4 } : splitWords(heads, rows, adapter);
}

/**
 * The same where all splits of keys have partial sums. On adapters that bind PARTIAL_BYTES and more, a block keeps
 * BLOCK_ROWS rows whatever these take, as long as they can be bound.
 *
 * @param cells cells of a split.
 */
export function splitWords(
  heads: Heads,
  rows: number,
  { bindingBytes = Infinity }: Pick<Tuning, "bindingBytes">,
  cells: number = SPLIT_CELLS,
): { readonly sums: number; readonly stats: number } {
  const splits = heads.heads * Math.ceil(splitsOf(heads) * SPLIT_CELLS / cells);
  const words = Math.min(PARTIAL_BYTES, bindingBytes) / 4;
  const fewest = fewestRows(heads);
  const step = Math.max(BLOCK_ROWS, fewest);
  const most = Math.floor(words / (splits * (heads.headDim + 2)) / step);
  const wanted = Math.min(rows, Math.max(1, most) * step);
  const sums = splits * heads.headDim;
  const bound = Math.floor(bindingBytes / 4 / sums);
  const kept = wanted <= bound ? wanted : Math.floor(bound / fewest) * fewest;
  if (kept > 0) return { sums: kept * sums, stats: kept * splits * 2 };
  throw sumsFault(heads.tablePages * PAGE, 4 * Math.min(rows, fewest) * sums, bindingBytes);
}

/** Fewest rows of a block, see `alignedRows`: q and out are f32, or out is f16. */
function fewestRows({ heads, headDim }: Heads, gate?: OutputGates): number {
  const row = heads * headDim;
  return alignedRows(4 * row, 2 * row, ...gate ? [4 * gate.cols] : []);
}

/** Whether attention without matrix units can reduce the scales of its output's rows. */
export function splitsReduceScales(heads: Heads, adapter: Adapter): boolean {
  return !inLanes(heads, adapter);
}

/** Whether attention without matrix units can store its output as f16: where it takes tiles of many rows. */
export function splitsStoreHalf(shape: Omit<AttentionShape, "label" | "scale">): boolean {
  if (inLanes(shape, shape.tuning) || !isTiled(shape)) return false;
  const words = partialWords(shape, shape.count, shape.tuning);
  const { heads, headDim } = shape;
  const kept = keptSums(shape);
  const room = Math.floor(Math.min(words.stats / 2, words.sums / headDim) / (heads * kept));
  return combinesRows({ many: true, kept }) && rowBlock(shape, room, fewestRows(shape)).perSlot > 1;
}

/** Records attention of `count` rows over the pages of their slots. */
export function attention(buffers: AttentionBuffers, shape: AttentionShape): Dispatch[] {
  const { count, perSlot } = shape;
  if (count % perSlot !== 0) throw new Error(`${count} rows are not slots of ${perSlot} rows`);
  if (inLanes(shape, shape.tuning)) {
    const work = cellWork(shape, 4 * count * shape.heads * shape.headDim);
    return [lanesAttention(buffers, { ...shape, constants: scoreConstants(shape), work })];
  }
  const tiles = isTiled(shape) && !buffers.own
    ? blockOf(buffers, { ...shape, tiled: true })
    : undefined;
  const tiled = tiles !== undefined && tiles.perSlot > 1;
  const block = tiled ? tiles : blockOf(buffers, { ...shape, tiled: false });
  return Array.from({ length: Math.ceil(count / block.count) }, (_, i) => {
    const first = i * block.count;
    const rows = Math.min(block.count, count - first);
    return attentionBlock(fromRow(buffers, shape, first), {
      ...shape,
      tiled,
      firstRow: first % ALIGNED_ROWS,
      firstScale: first,
      count: rows,
      perSlot: Math.min(block.perSlot, rows),
    });
  }).flat();
}

/** Rows whose partial sums fit at a time. */
function blockOf(
  { partial: { sums, stats }, gate }: AttentionBuffers,
  shape: AttentionShape & Pick<BlockShape, "tiled">,
): RowBlock {
  const splits = shape.heads * sumsOf(shape);
  const room = Math.min(bytesOf(stats) / 8, bytesOf(sums) / 4 / shape.headDim) / splits;
  return rowBlock(shape, Math.floor(room), fewestRows(shape, gate));
}

/** The same buffers from row `first` on; `rows` begins at the last aligned row that is not behind it. */
export function fromRow(buffers: AttentionBuffers, shape: Heads, first: number): AttentionBuffers {
  const { q, rows, out, halfScales, gate } = buffers;
  const before = first * shape.heads * shape.headDim * 4;
  const rowsBefore = (first - first % ALIGNED_ROWS) * ROW_BYTES;
  return {
    ...buffers,
    q: from(q, before),
    rows: from(rows, rowsBefore),
    out: from(out, halfScales ? before / 2 : before),
    ...gate && { gate: { ...gate, values: from(gate.values, first * gate.cols * 4) } },
  };
}

function attentionBlock(buffers: AttentionBuffers, shape: BlockShape): Dispatch[] {
  const { heads, headDim, count, label } = shape;
  const { q, keys, values, rows, pages, out, partial: { sums, stats }, sinks, gate } = buffers;
  const { scales, halfScales } = buffers;
  const kept = sumsOf(shape);
  const several = { ...shape, kept, constants: scoreConstants(shape), work: splitWork(shape) };
  const together = { q, keys, values, rows, pages, sums, stats };
  const shared = buffers.own ? [] : sharedTiles(shape);
  const many = count >= COMBINED_ROWS && !shape.tuning.software;
  const split = shape.tiled
    ? [tiledSums(together, several)]
    : shared.length > 0
    ? shared.map((tile) => sharedSums(together, several, tile))
    : [splitSums({ ...together, own: buffers.own }, several)];
  return [
    ...split,
    ...combineSums({ sums, stats, rows, out, sinks, gate }, {
      heads,
      headDim,
      count,
      kept,
      firstRow: shape.firstRow,
      many: shape.tiled || many,
      window: windowOf(shape),
      reduces: scales && { scales, first: shape.firstScale },
      half: halfScales && { scales: halfScales, first: shape.firstScale },
      label: `${label}.combine`,
      work: {
        bytes: (halfScales ? 2 : 4) * count * heads * headDim,
        flops: 0,
        context: {
          bytesPerCell: partialBytesPerCell(shape),
          flopsPerCell: 2 * count * heads * headDim / SPLIT_CELLS,
          window: shape.window,
        },
      },
    }),
  ];
}

/** Partial sums of a query. */
function sumsOf(shape: AttentionShape & Pick<BlockShape, "tiled">): number {
  return shape.tiled ? keptSums(shape) : splitsOf(shape);
}

interface AttentionParameters extends SplitParameters {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
}

/** attention.wgsl for `tile` rows and `group` query heads at a time. */
function splitKernel(
  { headDim, kvDtype }: Heads,
  { group, tile }: { readonly group: number; readonly tile: number },
): Kernel {
  const name = `attention_${kvDtype}_${headDim}_${group}x${tile}`;
  const counts = splitCounts(headDim, group, tile);
  return kernelOf<AttentionParameters>("attention/attention")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
    constants: [
      "KV_HEADS",
      "HEAD_TILES",
      "TABLE_PAGES",
      "KV_SPLITS",
      "PER_SLOT",
      "FIRST_ROW",
      "PATHS",
      ...SCORING,
    ],
  });
}

function splitSums(
  { q, own, ...kept }: SplitBuffers & Pick<AttentionBuffers, "own">,
  rows: SplitRows & Pick<AttentionShape, "tuning">,
): Dispatch {
  const { heads, kvHeads, headDim, perSlot, paths, kept: KV_SPLITS, tuning } = rows;
  const many = perSlot > MANY_ROWS && !tuning.software;
  const most = many ? MANY_QUERIES : own && headDim > WIDE_HEAD ? FEW_WIDE_QUERIES : FEW_QUERIES;
  const group = groupOf(heads / kvHeads, most);
  const tile = own ? 1 : tileOf(perSlot, most / group);
  const { constants, ...launch } = splitLaunch(rows, { group, tile });
  const { KV_HEADS, HEAD_TILES, TABLE_PAGES, PER_SLOT, FIRST_ROW, ...scoring } = constants;
  const alike = { KV_HEADS, HEAD_TILES, TABLE_PAGES, KV_SPLITS };
  if (own) {
    const constants = { ...alike, FIRST_ROW, ...scoring };
    return rowSums({ ...kept, own }, { ...rows, group, constants, launch });
  }
  return dispatch(splitKernel(rows, { group, tile }), {
    buffers: { q, ...kept },
    constants: { ...alike, PER_SLOT, FIRST_ROW, PATHS: Number(paths), ...scoring },
    ...launch,
  });
}

/** q in, partial sums out. */
function splitWork(shape: AttentionShape): Cost {
  return cellWork(shape, 0, partialBytesPerCell(shape));
}

/** Bytes of the partial sums of a slot's rows for each of its cells. */
function partialBytesPerCell({ perSlot, heads, headDim }: AttentionShape): number {
  return 4 * perSlot * heads * (headDim + 2) / SPLIT_CELLS;
}

/** A cell's key and value once; a multiplication and an addition of each row with either. */
export function cellWork(shape: AttentionShape, outBytes: number, partialBytes = 0): Cost {
  const { count, heads, kvHeads, headDim, kvDtype } = shape;
  return {
    bytes: 4 * count * heads * headDim + outBytes,
    flops: 0,
    context: {
      bytesPerCell: 2 * KV_BYTES[kvDtype] * kvHeads * headDim + partialBytes,
      flopsPerCell: 4 * count * heads * headDim,
      window: shape.window,
    },
  };
}

export function scoreConstants(
  { scale, cap = 0, window }: Scoring,
): { SCALE: number; CAP: number; WINDOW: number } {
  return { SCALE: scale, CAP: cap, WINDOW: windowOf({ window }) };
}

export function windowOf({ window = 0xffffffff }: Pick<Scoring, "window">): number {
  return window;
}
