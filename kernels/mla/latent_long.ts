/** latent_long.wgsl: attention over latents of few rows without paths at long contexts. */
import { type Kernel } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { CHUNK, type LatentSizes, SEGMENT } from "./latent_kernels.ts";

/** Queries of a workgroup: fewer make more workgroups. No bit of the result depends on it. */
export type LongQueries = 4 | 8;

/** Invocations of a workgroup: two teams, in which each invocation has a four of a latent. */
const THREADS = 256;
/** Cells of an invocation for the scores; 16 invocations share a score. */
const CELLS = 16 * SEGMENT / THREADS;
/** Steps of 16 fours whose latents are loaded ahead. */
const AHEAD = 1;

/** Most bytes of workgroup memory that latent_long.wgsl takes. */
export function longBytes(width: number): number {
  const [queries, chunks] = [8, SEGMENT / CHUNK];
  return 16 * 8 * poolOf(width) + 4 * queries * (2 * SEGMENT + 4 * chunks + 2) + 4 * chunks;
}

/** Fours of a query's place: its elements, a lane's sums, or the sums of a team in two halves. */
function poolOf(width: number): number {
  return Math.max(width / 4, 2 * (SEGMENT | 1), THREADS) | 1;
}

interface LongParameters {
  /** What keys are stored as. */
  readonly kv: KvDtype;
  /** Invocations of a workgroup. */
  readonly THREADS: number;
  /** Cells of a segment, fours of them, and those of an invocation, for the scores. */
  readonly CELLS: number;
  readonly FOURS: number;
  readonly TC: number;
  /** Queries of a workgroup, half of them, and fours of them. */
  readonly QUERIES: number;
  readonly HALF: number;
  readonly QUADS: number;
  /** Fours of workgroup memory for each query. */
  readonly POOL: number;
  /** Fours of a key, and of the latent in it. */
  readonly WIDTH4: number;
  readonly RANK4: number;
  /** Steps of the loop over a key whose loads are under way, and turns of that loop. */
  readonly AHEAD: number;
  readonly STEP_LOOPS: number;
  /** Fours of a query that an invocation loads. */
  readonly QUERY_LOADS: number;
  /** Fours of a latent of an invocation. */
  readonly SPANS: number;
  /** Cells whose latents are loaded at once. */
  readonly AT_ONCE: number;
}

/** Computes the sums of segments, in tiles of `queries` queries. */
export function longKernel({ rank, width, kvDtype }: LatentSizes, queries: LongQueries): Kernel {
  const name = `latent_long_${kvDtype}_${rank}_${width}_${queries}`;
  const counts = {
    THREADS,
    AHEAD,
    CELLS: SEGMENT,
    TC: CELLS,
    QUERIES: queries,
    QUADS: queries / 4,
    HALF: queries / 2,
    FOURS: SEGMENT / 4,
    POOL: poolOf(width),
    WIDTH4: width / 4,
    RANK4: rank / 4,
    STEP_LOOPS: Math.ceil(width / 4 / 16 / AHEAD),
    QUERY_LOADS: Math.ceil(width / 4 / (THREADS / queries)),
    SPANS: Math.ceil(rank / 4 / (THREADS / 2)),
    AT_ONCE: 8,
  };
  return kernelOf<LongParameters>("mla/latent_long")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "rows", "pages", "sums", "stats"],
    constants: ["HEADS", "TABLE_PAGES", "RUNS", "SLOT_QUERIES", "FIRST_ROW", "SCALE", "WINDOW"],
  });
}
