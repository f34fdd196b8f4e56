/** Attention over latents of many rows, in two products: the weights of all cells, then their weighted sums. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import { kernelOf } from "../shader.ts";
import { type LatentSizes, SEGMENT } from "./latent_kernels.ts";

/** A workgroup of latent_prefill_weights.wgsl. No bit of the result depends on it. */
interface WeightsTile {
  readonly queries: number;
  readonly cells: number;
  /** Queries and cells of a block. */
  readonly tall: number;
  readonly wide: number;
}

/** A workgroup of latent_prefill_values.wgsl. No bit of the result depends on it. */
interface ValuesTile {
  readonly queries: number;
  /** Elements of latents. */
  readonly dims: number;
  /** Queries and fours of elements of an invocation. */
  readonly tall: number;
  readonly fours: number;
  /** Chunks of 16 cells of a stage: 1 or 2. */
  readonly staged: number;
}

/** Measured on an H200. Queries of WEIGHTS must be a multiple of those of VALUES, and its cells of two chunks. */
const WEIGHTS: WeightsTile = { queries: 32, cells: 32, tall: 8, wide: 4 };
const VALUES: ValuesTile = { queries: 32, dims: 128, tall: 8, fours: 1, staged: 1 };

/** Invocations that share a block of scores in latent_prefill_weights.wgsl. */
const SCORE_LANES = 4;

/** f32 words of a record of latent_prefill_weights.wgsl. */
export const RECORD_WORDS = 144;
/** Lanes that segments are merged in, see lib/latent_runs.wgsl: decides bits. */
const LANES = 4;

/** Most bytes of workgroup memory that either kernel takes. */
export function prefillBytes(): number {
  const weighed = 16 * slabOf(WEIGHTS) + 4 * WEIGHTS.queries;
  const { queries, dims, staged } = VALUES;
  const stage = 16 * (queries * (4 * staged + 1) + staged * 16 * dims / 4);
  return Math.max(weighed, stage + queries * (8 * 8 + 8 + 8 + 4) + 32);
}

/** Queries of an invocation whose sums are added at a time. */
function batchOf({ queries, cells, tall }: WeightsTile): number {
  const each = SCORE_LANES * (queries / tall) * (cells / 4);
  const room = 17 * (queries + cells) - queries * (cells / 4 + 1);
  return [8, 4, 2, 1].find((batch) => tall % batch === 0 && batch * each <= room) ?? 1;
}

/** Fours of queries and keys, whose rows begin in different banks; later of sums and scores. */
function slabOf(tile: WeightsTile): number {
  const { queries, cells, tall } = tile;
  const pool = batchOf(tile) * SCORE_LANES * (queries / tall) * (cells / 4);
  return Math.max(17 * (queries + cells), pool + queries * (cells / 4 + 1));
}

interface Shape {
  readonly sizes: LatentSizes;
  readonly heads: number;
  readonly tablePages: number;
  readonly count: number;
  readonly perSlot: number;
  readonly firstRow: number;
  readonly runs: number;
  readonly scale: number;
  readonly label: string;
  readonly forCells?: Dispatch["forCells"] | undefined;
}

interface Buffers {
  readonly q: Operand;
  readonly keys: Operand;
  readonly rows: Operand;
  readonly pages: Operand;
  readonly sums: Operand;
  readonly out: Operand;
}

/** Records attention of chains of rows that see all cells before them. */
export function prefillAttention(buffers: Buffers, shape: Shape): Dispatch[] {
  const { sizes, heads, tablePages, count, perSlot, firstRow, runs, scale, label, forCells } =
    shape;
  const { q, keys, rows, pages, sums, out } = buffers;
  const { rank, width, kvDtype } = sizes;
  const tiles = (queries: number) => {
    const SLOT_QUERIES = perSlot * heads % queries === 0 ? queries : perSlot * heads;
    const each = Math.ceil(SLOT_QUERIES / queries);
    return { SLOT_QUERIES, tiles: count * heads / SLOT_QUERIES * each };
  };
  const [scored, summed] = [tiles(WEIGHTS.queries), tiles(VALUES.queries)];
  const common = {
    HEADS: heads,
    TABLE_PAGES: tablePages,
    RUNS: runs,
    FIRST_ROW: firstRow,
    WINDOW: 0xffffffff,
  };
  const latentBytes = KV_BYTES[kvDtype];
  return [
    dispatch(weightsKernel(sizes, WEIGHTS), {
      buffers: { q, keys, rows, pages, sums },
      constants: { ...common, SLOT_QUERIES: scored.SLOT_QUERIES, SCALE: scale },
      workgroups: [scored.tiles, 1, runs * SEGMENT / WEIGHTS.cells],
      cellsEach: WEIGHTS.cells,
      forCells,
      label: `${label}.weights`,
      work: {
        bytes: 4 * count * heads * width,
        flops: 0,
        context: {
          bytesPerCell: latentBytes * width + 4 * count * heads,
          flopsPerCell: 2 * count * heads * width,
          window: undefined,
        },
      },
    }),
    dispatch(valuesKernel(sizes, VALUES), {
      buffers: { sums, keys, rows, pages, out },
      constants: { ...common, SLOT_QUERIES: summed.SLOT_QUERIES },
      workgroups: [Math.ceil(rank / VALUES.dims), summed.tiles],
      forCells,
      label,
      work: {
        bytes: 4 * count * heads * rank,
        flops: 0,
        context: {
          bytesPerCell: latentBytes * rank + 4 * count * heads,
          flopsPerCell: 2 * count * heads * rank,
          window: undefined,
        },
      },
    }),
  ];
}

interface WeightsParameters {
  /** What keys are stored as. */
  readonly kv: KvDtype;
  /** Queries and cells of a workgroup. */
  readonly QUERIES: number;
  readonly CELLS: number;
  /** Queries, cells and fours of cells of a block. */
  readonly TQ: number;
  readonly TC: number;
  readonly QUADS: number;
  /** Blocks of a workgroup along queries and along cells, and its invocations. */
  readonly TALL: number;
  readonly WIDE: number;
  readonly THREADS: number;
  /** Queries of a block whose sums are added at a time, and how often that is. */
  readonly BATCH: number;
  readonly BATCHES: number;
  /** Fours of workgroup memory. */
  readonly SLAB: number;
  /** Fours of a key. */
  readonly WIDTH4: number;
  /** Fours of queries and of keys that an invocation loads at a time. */
  readonly Q_LOADS: number;
  readonly K_LOADS: number;
}

interface ValuesParameters {
  /** What keys are stored as. */
  readonly kv: KvDtype;
  /** Queries and elements of latents of a workgroup. */
  readonly QUERIES: number;
  readonly DIMS: number;
  /** Queries and fours of elements of an invocation. */
  readonly TQ: number;
  readonly TD: number;
  /** Invocations along the elements, and all. */
  readonly WIDE: number;
  readonly THREADS: number;
  /** Chunks of cells of a stage. */
  readonly STAGED: number;
  /** Lanes that segments are merged in. */
  readonly LANES: number;
  /** Fours of a key, and of the latent in it. */
  readonly WIDTH4: number;
  readonly RANK4: number;
  /** Fours of weights and of latents that an invocation loads of a stage. */
  readonly W_LOADS: number;
  readonly L_LOADS: number;
}

function weightsKernel({ width, kvDtype }: LatentSizes, tile: WeightsTile): Kernel {
  const { queries: QUERIES, cells: CELLS, tall: TQ, wide: TC } = tile;
  const shape = `${QUERIES}x${CELLS}_${SCORE_LANES}_${TQ}x${TC}`;
  const name = `latent_prefill_weights_${kvDtype}_${width}_${shape}`;
  const [TALL, WIDE, QUADS] = [QUERIES / TQ, CELLS / TC, TC / 4];
  const THREADS = TALL * WIDE * SCORE_LANES;
  const [SLAB, BATCH] = [slabOf(tile), batchOf(tile)];
  const counts = {
    QUERIES,
    CELLS,
    TQ,
    TC,
    TALL,
    WIDE,
    QUADS,
    THREADS,
    BATCH,
    BATCHES: TQ / BATCH,
    SLAB,
    WIDTH4: width / 4,
    Q_LOADS: Math.ceil(QUERIES * 16 / THREADS),
    K_LOADS: Math.ceil(CELLS * 16 / THREADS),
  };
  return kernelOf<WeightsParameters>("mla/latent_prefill_weights")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "rows", "pages", "sums"],
    constants: ["HEADS", "TABLE_PAGES", "RUNS", "SLOT_QUERIES", "FIRST_ROW", "SCALE", "WINDOW"],
  });
}

function valuesKernel({ rank, width, kvDtype }: LatentSizes, tile: ValuesTile): Kernel {
  const { queries: QUERIES, dims: DIMS, tall: TQ, fours: TD, staged: STAGED } = tile;
  const shape = `${QUERIES}x${DIMS}_${TQ}x${TD}_${STAGED}`;
  const name = `latent_prefill_values_${kvDtype}_${rank}_${width}_${shape}`;
  const WIDE = DIMS / 4 / TD;
  const THREADS = QUERIES / TQ * WIDE;
  const counts = {
    QUERIES,
    DIMS,
    TQ,
    TD,
    STAGED,
    WIDE,
    THREADS,
    LANES,
    WIDTH4: width / 4,
    RANK4: rank / 4,
    W_LOADS: Math.ceil(QUERIES * STAGED * 4 / THREADS),
    L_LOADS: Math.ceil(STAGED * 16 * DIMS / 4 / THREADS),
  };
  return kernelOf<ValuesParameters>("mla/latent_prefill_values")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["sums", "keys", "rows", "pages", "out"],
    constants: ["HEADS", "TABLE_PAGES", "RUNS", "SLOT_QUERIES", "FIRST_ROW", "WINDOW"],
  });
}
