import { type Kernel } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { kernelOf } from "../shader.ts";

/** Cells of a chunk and of a segment of latent_attention.wgsl. */
export const CHUNK = 16;
export const SEGMENT = 128;
/** Cells up to which chunks of few rows go to workgroups of their own. */
export const CHUNK_CELLS = 2048;

/** How the workgroups of latent_attention.wgsl share their queries. No bit of the result depends on it. */
export interface LatentTile {
  readonly queries: number;
  readonly threads: number;
  /** Invocations a score: 4, 8 or 16. */
  readonly lanes: number;
  /** Cells of an invocation, for the scores. */
  readonly cells: number;
  /** Groups of invocations that share the queries, for the values. */
  readonly groups: number;
}

/** From few queries to many: threads = 16 / cells * lanes * queries / 4. */
export const TILES: Readonly<
  Record<"fours" | "eights" | "long" | "sixteens" | "many", LatentTile>
> = {
  fours: { queries: 4, threads: 128, lanes: 16, cells: 2, groups: 1 },
  eights: { queries: 8, threads: 128, lanes: 8, cells: 2, groups: 1 },
  long: { queries: 8, threads: 256, lanes: 16, cells: 2, groups: 2 },
  sixteens: { queries: 16, threads: 256, lanes: 8, cells: 2, groups: 2 },
  many: { queries: 32, threads: 256, lanes: 4, cells: 2, groups: 4 },
};

/** Steps of a loop that are unrolled: in a forward, instructions that run once cost more than a loop. */
const STEPS = 3;
const CELLS_AT_ONCE = 4;

/** Elements of what is stored for a token. */
export interface LatentSizes {
  /** Elements of the latent, and of latent and rotated part together; both are multiples of 8. */
  readonly rank: number;
  readonly width: number;
  readonly kvDtype: KvDtype;
}

/** Workgroup memory that a tile takes, bytes. */
export function tileBytes({ queries, lanes }: LatentTile, width: number): number {
  const quads = queries / 4;
  const vec4s = CHUNK * (width / 4 + 1) + lanes * (CHUNK * quads + 1) + CHUNK * quads + 5 * quads;
  return 16 * vec4s;
}

/** What latent_attention.wgsl and latent_chunk.wgsl take. */
interface LatentParameters {
  /** What keys are stored as. */
  readonly kv: KvDtype;
  /** Invocations of a workgroup. */
  readonly THREADS: number;
  /** Eights of a key, and fours of the latent in it. */
  readonly VEC8S: number;
  readonly RANK4: number;
  /** Cells of an invocation, for the scores. */
  readonly CELLS: number;
  /** Steps of the loop over a key that are unrolled, and turns of that loop. */
  readonly STEPS: number;
  readonly STEP_LOOPS: number;
  /** Eights of keys that an invocation loads of a chunk. */
  readonly LOADS: number;
}

interface RunParameters extends LatentParameters {
  /** Cells of a run. */
  readonly RUN: number;
  /** Queries of a workgroup, and fours of them. */
  readonly QUERIES: number;
  readonly QUADS: number;
  /**
   * Invocations that share a score, a half, a quarter, an eighth and a sixteenth of them, which add their sums, and
   * levels of the tree of these additions.
   */
  readonly LANES: number;
  readonly LANES_2: number;
  readonly LANES_4: number;
  readonly LANES_8: number;
  readonly LANES_16: number;
  readonly LEVELS: number;
  /** Neighbouring sums of a score that an invocation has, two or one, and how many of such. */
  readonly SIDES: number;
  readonly PARTS: number;
  /** Groups of invocations that share the queries, for the values; fours of queries of each, by turns of one or two. */
  readonly GROUPS: number;
  readonly OWN: number;
  readonly BOTH: number;
  readonly TIMES: number;
  /** Fours of a latent of an invocation. */
  readonly SPANS: number;
  /** Cells whose latents are loaded at once. */
  readonly AT_ONCE: number;
  /** Scores of four queries of an invocation. */
  readonly TURNS: number;
}

interface ChunkParameters extends LatentParameters {
  /** Fours of workgroup memory of a quarter of the queries or of the sums. */
  readonly POOL: number;
  /** Fours of queries that an invocation loads. */
  readonly QUERY_LOADS: number;
}

/** What lib/latent_runs.wgsl takes. */
export type RunsParameters =
  & {
    /** Fours of a latent, and how many of them a workgroup adds at a time. */
    readonly RANK4: number;
    readonly QUADS: number;
    /** Lanes that segments are merged in. */
    readonly LANES: number;
    /** Invocations of a workgroup, and pairs of a lane and a four that one has. */
    readonly THREADS: number;
    readonly TURNS: number;
  }
  & (
    | {
      /** Whether runs are segments, and not chunks. */
      readonly SEGMENTS: true;
      /** Runs that are loaded at once. */
      readonly RUNS_AHEAD: number;
    }
    | {
      readonly SEGMENTS: false;
      /** Chunks of a segment, and most segments. */
      readonly SHARES: number;
      readonly MAX_SEGMENTS: number;
      /** Chunks that an invocation looks at. */
      readonly CHUNK_TURNS: number;
    }
  );

type CombineParameters = RunsParameters & {
  /** Fours of a row of out. */
  readonly OUT4: number;
};

/** Sums of runs of `run` cells. */
export function latentKernel(
  { rank, width, kvDtype }: LatentSizes,
  tile: LatentTile,
  run: number,
): Kernel {
  const { queries, threads, lanes, cells, groups } = tile;
  const shape = [rank, width, queries, threads, lanes, cells, groups, run];
  const name = `latent_attention_${kvDtype}_${shape.join("_")}`;
  const QUADS = queries / 4;
  const OWN = QUADS / groups;
  const BOTH = Math.min(2, OWN);
  const counts = {
    RUN: run,
    THREADS: threads,
    QUERIES: queries,
    QUADS,
    VEC8S: width / 8,
    RANK4: rank / 4,
    LANES: lanes,
    SIDES: Math.min(2, CHUNK / lanes),
    PARTS: Math.ceil(CHUNK / 2 / lanes),
    CELLS: cells,
    GROUPS: groups,
    OWN,
    BOTH,
    TIMES: OWN / BOTH,
    SPANS: Math.ceil(rank / 4 / (threads / groups)),
    LOADS: Math.ceil(CHUNK * width / 8 / threads),
    STEPS,
    STEP_LOOPS: Math.ceil(width / 4 / CHUNK / STEPS),
    AT_ONCE: CELLS_AT_ONCE,
    TURNS: Math.ceil(CHUNK * QUADS / threads),
    LANES_2: lanes / 2,
    LANES_4: lanes / 4,
    LANES_8: Math.floor(lanes / 8),
    LANES_16: Math.floor(lanes / 16),
    LEVELS: Math.log2(lanes),
  };
  return kernelOf<RunParameters>("mla/latent_attention")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "rows", "pages", "sums", "stats"],
    constants: [
      "HEADS",
      "TABLE_PAGES",
      "RUNS",
      "SLOT_QUERIES",
      "FIRST_ROW",
      "PATHS",
      "SCALE",
      "WINDOW",
    ],
  });
}

/** Queries of a workgroup of latent_chunk.wgsl, and cells of an invocation. */
const [CHUNK_QUERIES, CHUNK_CELLS_EACH] = [TILES.fours.queries, 2];
const SCORE_SUMS = 16;

/** Whether `chunkKernel` computes this tile, where a run is a chunk. */
export function isChunkTile({ queries }: LatentTile, paths: boolean): boolean {
  return queries === CHUNK_QUERIES && !paths;
}

/** Computes sums of runs of one chunk for four queries, with the bits of `latentKernel`, whose code is longer. */
export function chunkKernel({ rank, width, kvDtype }: LatentSizes): Kernel {
  const threads = CHUNK / CHUNK_CELLS_EACH * SCORE_SUMS;
  const name = `latent_chunk_${kvDtype}_${rank}_${width}_${threads}`;
  const sums = SCORE_SUMS / CHUNK_QUERIES * (CHUNK + 1);
  const counts = {
    THREADS: threads,
    VEC8S: width / 8,
    RANK4: rank / 4,
    CELLS: CHUNK_CELLS_EACH,
    STEPS,
    STEP_LOOPS: Math.ceil(width / 4 / SCORE_SUMS / STEPS),
    POOL: Math.max(width / 4, sums),
    QUERY_LOADS: Math.ceil(width / threads),
    LOADS: Math.ceil(CHUNK * width / 8 / threads),
  };
  return kernelOf<ChunkParameters>("mla/latent_chunk")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "rows", "pages", "sums", "stats"],
    constants: ["HEADS", "TABLE_PAGES", "RUNS", "SLOT_QUERIES", "FIRST_ROW", "SCALE", "WINDOW"],
  });
}

/** Fours of a latent that a workgroup of latent_combine.wgsl computes. */
const COMBINED_QUADS = 64;
/** Queries from which an invocation adds all lanes of a four, since there are enough workgroups. */
const MANY_QUERIES = 1024;
/** Lanes that segments are merged in, see lib/latent_runs.wgsl. */
const LANES = 4;

/** Workgroups of a head where runs are added. */
export function latentCombineTiles(rank: number): number {
  return Math.ceil(rank / 4 / COMBINED_QUADS);
}

/** Parameters for adding runs of `run` cells, in workgroups of `threads` that take `quads` fours of a latent. */
export function runsOf(
  { rank, run, quads, threads }: {
    readonly rank: number;
    readonly run: number;
    readonly quads: number;
    readonly threads: number;
  },
): RunsParameters {
  const TURNS = Math.ceil(LANES * quads / threads);
  const counts = { RANK4: rank / 4, LANES, QUADS: quads, THREADS: threads, TURNS };
  if (run === SEGMENT) {
    // LANES times this divides the 64 segments that the kernel adds at a time.
    return {
      SEGMENTS: true,
      ...counts,
      RUNS_AHEAD: 2 ** Math.floor(Math.log2(Math.max(1, 8 / TURNS))),
    };
  }
  const [SHARES, MAX_SEGMENTS] = [SEGMENT / run, CHUNK_CELLS / SEGMENT];
  return {
    SEGMENTS: false,
    ...counts,
    SHARES,
    MAX_SEGMENTS,
    CHUNK_TURNS: Math.ceil(MAX_SEGMENTS * SHARES / threads),
  };
}

/** Adds runs of `run` cells. No bit depends on `queries`. */
export function latentCombineKernel(
  { rank, width }: Pick<LatentSizes, "rank" | "width">,
  run: number,
  queries: number,
): Kernel {
  const threads = COMBINED_QUADS * (queries < MANY_QUERIES ? LANES : 1);
  const name = `latent_combine_${rank}_${width}_${run}_${threads}`;
  const runs = runsOf({ rank, run, quads: COMBINED_QUADS, threads });
  return kernelOf<CombineParameters>("mla/latent_combine")({ ...runs, OUT4: width / 4 }, {
    name,
    bindings: ["sums", "out", "stats", "rows"],
    constants: ["HEADS", "RUNS", "FIRST_ROW", "WINDOW"],
  });
}
