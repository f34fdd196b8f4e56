import {
  bytesOf,
  type CellRange,
  type Dispatch,
  dispatch,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { KV_BYTES } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { Heads, PartialSums } from "../lib/heads.ts";
import { ALIGNED_ROWS, BLOCK_ROWS, from, ROW_BYTES, sumsFault } from "../lib/row_blocks.ts";
import { longBytes, longKernel } from "./latent_long.ts";
import { chunksOf, FEW_ROWS, type Pass, passesOf, segmentsOf } from "./latent_passes.ts";
import { prefillAttention, prefillBytes, RECORD_WORDS } from "./latent_prefill.ts";
import {
  CHUNK,
  chunkKernel,
  isChunkTile,
  latentCombineKernel,
  latentCombineTiles,
  latentKernel,
  type LatentSizes,
  type LatentTile,
  tileBytes,
  TILES,
} from "./latent_kernels.ts";

/** Queries of a slot from which the two kernels of prefillAttention beat one kernel, measured on an H200. */
const MANY_QUERIES = 1024;

/** Bytes of partial sums that attention over many rows may take before it goes block by block. */
const PARTIAL_BYTES = 128 << 20;
/** Heads over latents: one key-value head; `headDim` is the width of what is stored for a token. */
interface LatentShape extends Heads {
  /** Elements of a latent, the first of `headDim`. */
  readonly rank: number;
}

/** Partial sums of runs of cells, for the kernel that adds them. */
export interface LatentRuns extends PartialSums {
  /** The first of the launch's `count` rows is at `firstRow`. */
  readonly rows: Operand;
  readonly firstRow: number;
  /** Cells of a run, and places for runs of a query. */
  readonly run: number;
  readonly runs: number;
  readonly window: number | undefined;
  /** The context lengths for which the sums are computed. */
  readonly forCells: CellRange | undefined;
}

interface Launch extends Omit<LatentShape, "kvHeads"> {
  readonly count: number;
  /** Rows of one slot that follow each other; divides `count`. */
  readonly perSlot: number;
  /** Whether rows may have paths; false where all are chains, which then pay nothing for it. */
  readonly paths: boolean;
  /** Of scores. */
  readonly scale: number;
  /** Cells that a row sees, its own the last; undefined = all. */
  readonly window?: number | undefined;
  readonly tuning: Pick<Tuning, "software" | "workgroupBytes">;
  /** Default: chosen by the queries of a slot; many queries are computed by prefillAttention. */
  readonly tile?: LatentTile | undefined;
  /**
   * Records the dispatch that adds the runs of all rows; default: a kernel that writes `out`. Not for rows in blocks.
   */
  readonly finish?: ((runs: LatentRuns) => Dispatch) | undefined;
  readonly label: string;
}

interface Buffers {
  /** [rows, heads, headDim] */
  readonly q: Operand;
  /** [pages, PAGE, headDim] */
  readonly latents: Operand;
  readonly rows: Operand;
  readonly pages: Operand;
  /** [rows, heads, headDim], of which the first `rank` elements are written. */
  readonly out: Operand;
  /** For as many rows as `latentPartialWords` was asked for, or fewer. */
  readonly partial: PartialSums;
}

/** Whether an adapter has workgroup memory for the kernel; others take attention.wgsl. */
export function tilesLatents(
  { headDim }: Pick<Heads, "headDim">,
  { software, workgroupBytes }: Pick<Tuning, "software" | "workgroupBytes">,
): boolean {
  return !software &&
    Object.values(TILES).every((tile) => tileBytes(tile, headDim) <= workgroupBytes);
}

/**
 * f32 words of the partial sums of attention over at most `rows` rows; of fewer rows where those would pass
 * PARTIAL_BYTES or could not be bound.
 *
 * @throws UsageError if a kernel cannot bind the sums of the fewest rows that go together.
 */
export function latentPartialWords(
  { heads, rank, tablePages }: Pick<LatentShape, "heads" | "rank" | "tablePages">,
  rows: number,
  { bindingBytes = Infinity }: Pick<Tuning, "bindingBytes">,
): { readonly sums: number; readonly stats: number } {
  const segments = segmentsOf(tablePages);
  const wanted = Math.max(rows * segments, Math.min(rows, FEW_ROWS) * chunksOf(tablePages));
  const room = Math.floor(PARTIAL_BYTES / 4 / heads / (rank + 2));
  const bound = Math.floor(bindingBytes / 4 / heads / rank);
  const fewest = Math.min(rows, BLOCK_ROWS) * segments;
  if (bound < fewest) {
    throw sumsFault(tablePages * CHUNK, 4 * heads * rank * fewest, bindingBytes);
  }
  const kept = heads * Math.min(wanted, Math.max(room, BLOCK_ROWS * segments), bound);
  return { sums: kept * rank, stats: kept * 2 };
}

/** Records attention of `count` rows over the latents of their slots. */
export function latentAttention(buffers: Buffers, shape: Launch): Dispatch[] {
  const { count, perSlot } = shape;
  if (count % perSlot !== 0) throw new Error(`${count} rows are not slots of ${perSlot} rows`);
  const { sums, stats } = buffers.partial;
  const [kept, ends] = [bytesOf(sums) / 4 / shape.heads, bytesOf(stats) / 8 / shape.heads];
  const asked = { ...shape, long: goesLong(shape) };
  return goesInProducts(shape)
    ? passesOf(Math.floor(kept / RECORD_WORDS), asked)
      .flatMap((pass) => productsOf(buffers, shape, pass))
    : passesOf(Math.floor(Math.min(ends, kept / shape.rank)), asked)
      .flatMap((pass) => passOf(buffers, shape, pass));
}

/** Whether latent_long.wgsl computes few rows of long contexts: for chains, if there is workgroup memory for it. */
function goesLong({ paths, tile, headDim, tuning }: Launch): boolean {
  return !paths && !tile && longBytes(headDim) <= tuning.workgroupBytes;
}

/** Whether prefillAttention computes many rows: for chains of many queries without a window. */
function goesInProducts(
  { perSlot, heads, rank, paths, window, tile, finish, tuning }: Launch,
): boolean {
  return perSlot * heads >= MANY_QUERIES && !paths && !window && !tile && !finish &&
    rank >= RECORD_WORDS && prefillBytes() <= tuning.workgroupBytes;
}

/** The parts of the buffers that a pass reads and writes. */
function placesOf(
  { q, rows, out }: Buffers,
  { heads, headDim }: Pick<Launch, "heads" | "headDim">,
  first: number,
) {
  const before = 4 * first * heads * headDim;
  const ahead = first % ALIGNED_ROWS;
  return {
    q: from(q, before),
    out: from(out, before),
    rows: from(rows, (first - ahead) * ROW_BYTES),
    firstRow: ahead,
  };
}

function productsOf(buffers: Buffers, shape: Launch, pass: Pass): Dispatch[] {
  const { rank, headDim: width, kvDtype } = shape;
  const { latents: keys, pages, partial: { sums } } = buffers;
  const { firstRow, ...places } = placesOf(buffers, shape, pass.first);
  const { count, perSlot, runs, forCells } = pass;
  return prefillAttention({ ...places, keys, pages, sums }, {
    ...shape,
    count,
    perSlot,
    runs,
    forCells,
    firstRow,
    sizes: { rank, width, kvDtype },
  });
}

function passOf(buffers: Buffers, shape: Launch, pass: Pass): Dispatch[] {
  const { heads, headDim, rank, kvDtype, window, label } = shape;
  const { latents: keys, pages, partial: { sums, stats } } = buffers;
  const { first, count, perSlot, run, runs, forCells, long } = pass;
  const { q, out, rows, firstRow } = placesOf(buffers, shape, first);
  const sizes: LatentSizes = { rank, width: headDim, kvDtype };
  const { tile = tileOf(perSlot * heads, run) } = shape;
  const queries = long ?? tile.queries;
  const SLOT_QUERIES = perSlot * heads % queries === 0 ? queries : perSlot * heads;
  const tiles = count * heads / SLOT_QUERIES * Math.ceil(SLOT_QUERIES / queries);
  const [HEADS, RUNS, FIRST_ROW, WINDOW] = [heads, runs, firstRow, window ?? 0xffffffff];
  const ended = { sums, stats, rows, run, runs, window, forCells, firstRow };
  if (shape.finish && count < shape.count) throw new Error(`${label}: rows go in blocks`);
  const partialBytes = 4 * heads * (rank + 2) / run;
  const single = run === CHUNK && isChunkTile(tile, shape.paths);
  const kernel = long
    ? longKernel(sizes, long)
    : single
    ? chunkKernel(sizes)
    : latentKernel(sizes, tile, run);
  return [
    dispatch(kernel, {
      buffers: { q, keys, rows, pages, sums, stats },
      constants: {
        HEADS,
        TABLE_PAGES: shape.tablePages,
        RUNS,
        SLOT_QUERIES,
        FIRST_ROW,
        ...single || long ? {} : { PATHS: Number(shape.paths) },
        SCALE: shape.scale,
        WINDOW,
      },
      workgroups: [tiles, 1, runs],
      cellsEach: run,
      forCells,
      label,
      work: {
        bytes: 4 * count * heads * headDim,
        flops: 0,
        context: {
          bytesPerCell: KV_BYTES[kvDtype] * headDim + perSlot * partialBytes,
          flopsPerCell: 2 * count * heads * (headDim + rank),
          window,
        },
      },
    }),
    shape.finish ? shape.finish(ended) : dispatch(latentCombineKernel(sizes, run, count * heads), {
      buffers: { sums, stats, rows, out },
      constants: { HEADS, RUNS, FIRST_ROW, WINDOW },
      workgroups: [latentCombineTiles(rank), heads, count],
      forCells,
      label: `${label}.combine`,
      work: {
        bytes: 4 * count * heads * rank,
        flops: 0,
        context: {
          bytesPerCell: perSlot * partialBytes,
          flopsPerCell: 2 * count * heads * rank / run,
          window,
        },
      },
    }),
  ];
}

/**
 * The tile: more queries share reads where there are enough workgroups (shorter runs make more); measured on an H200.
 */
function tileOf(queries: number, run: number): LatentTile {
  const { fours, eights, long, sixteens, many } = TILES;
  const tiles = run === CHUNK
    ? [[16, fours], [32, eights], [128, sixteens]] as const
    : [[16, long], [64, sixteens]] as const;
  return tiles.find(([most]) => queries <= most)?.[1] ?? many;
}
