import { type Kernel } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { KernelParameters } from "../../src/gpu/directives.ts";
import { kernelOf } from "../shader.ts";

/** Cells of a chunk and of a segment of latent_attention.wgsl. */
export const CHUNK = 16;
export const SEGMENT = 128;
/** Cells up to which chunks of few rows go to workgroups of their own. */
export const CHUNK_CELLS = 2048;

/** How the workgroups of latent_attention.wgsl share their queries. None of it touches a bit of the result. */
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

/** Elements of what is kept of a token. */
export interface LatentSizes {
  /** Multiples of 8 both: of the latent, and with the rotated part. */
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
  return kernelOf("mla/latent_attention")({ kv: kvDtype, ...counts }, {
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

/** Whether `tile` of rows with or without paths is one for `chunkKernel`, where a run is a chunk. */
export function isChunkTile({ queries }: LatentTile, paths: boolean): boolean {
  return queries === CHUNK_QUERIES && !paths;
}

/** Sums of runs of one chunk, of four queries: the bits of `latentKernel`, which has a longer text. */
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
    LANES: SCORE_SUMS,
    LANES_2: 8,
    LANES_4: 4,
    LANES_8: 2,
  };
  return kernelOf("mla/latent_chunk")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "rows", "pages", "sums", "stats"],
    constants: [
      ...["HEADS", "TABLE_PAGES", "RUNS", "SLOT_QUERIES", "FIRST_ROW", "SCALE", "WINDOW"],
    ],
  });
}

/** Fours of a latent that a workgroup of latent_combine.wgsl makes. */
const COMBINED_QUADS = 64;
/** Queries from which an invocation adds all lanes of a four: there are workgroups enough. */
const MANY_QUERIES = 1024;
/** Lanes that segments are merged in, see lib/latent_runs.wgsl. */
const LANES = 4;

/** Workgroups of a head where runs are added. */
export function latentCombineTiles(rank: number): number {
  return Math.ceil(rank / 4 / COMBINED_QUADS);
}

/**
 * What adds runs of `run` cells in workgroups of `threads` that take `quads` fours of a latent: the
 * parameters of lib/latent_runs.wgsl.
 */
export function runsOf(
  { rank, run, quads, threads }: {
    readonly rank: number;
    readonly run: number;
    readonly quads: number;
    readonly threads: number;
  },
): KernelParameters {
  const TURNS = Math.ceil(LANES * quads / threads);
  const counts = { RANK4: rank / 4, LANES, QUADS: quads, THREADS: threads, TURNS };
  if (run === SEGMENT) {
    return { SEGMENTS: true, ...counts, RUNS_AHEAD: Math.ceil(8 / TURNS) };
  }
  const [SHARES, MOST_SEGMENTS] = [SEGMENT / run, CHUNK_CELLS / SEGMENT];
  return {
    SEGMENTS: false,
    ...counts,
    SHARES,
    MOST_SEGMENTS,
    CHUNK_TURNS: Math.ceil(MOST_SEGMENTS * SHARES / threads),
  };
}

/** Adds runs of `run` cells of so many queries, which touches no bit. */
export function latentCombineKernel(
  { rank, width }: Pick<LatentSizes, "rank" | "width">,
  run: number,
  queries: number,
): Kernel {
  const threads = COMBINED_QUADS * (queries < MANY_QUERIES ? LANES : 1);
  const name = `latent_combine_${rank}_${width}_${run}_${threads}`;
  const runs = runsOf({ rank, run, quads: COMBINED_QUADS, threads });
  return kernelOf("mla/latent_combine")({ ...runs, OUT4: width / 4 }, {
    name,
    bindings: ["sums", "out", "stats", "rows"],
    constants: ["HEADS", "RUNS", "FIRST_ROW", "WINDOW"],
  });
}
