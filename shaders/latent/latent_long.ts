/** Attention over latents of few rows without paths at long contexts. */
import { type Kernel, kernel } from "../../src/gpu/kernel.ts";
import { shader } from "../shader.ts";
import { CHUNK, type LatentSizes } from "./latent_kernels.ts";

/** How the workgroups of latent_long.wgsl share scores and values. None of it touches a bit of the result. */
export interface LongTile {
  /** Of a workgroup: 4, 8 or 16. */
  readonly queries: number;
  /** Cells at a time, whole chunks. */
  readonly cells: number;
  /** Queries and cells of an invocation, for the scores. */
  readonly tall: number;
  readonly wide: number;
  /** Steps of 16 fours whose latents are on their way. */
  readonly ahead: number;
  readonly roomy?: boolean;
  readonly teams?: number;
}

/** Lanes that share a score, and the most fours of a latent side by side where values are made. */
const LANES = 16;
const MOST_DIMS = 128;

const kernels = new Map<string, Kernel>();

export function longThreads({ queries, cells, tall, wide }: LongTile): number {
  return LANES * (queries / tall) * (cells / wide);
}

/** Fours of queries of an invocation whose lanes' sums are added at a time: as queries' place has room for. */
function layoutOf({ queries, cells, tall, roomy, teams }: LongTile, width: number) {
  const qblocks = queries / tall;
  const each = LANES / queries; // lanes of a query's place
  const sides = (batch: number) => Math.max(1, each) * ((cells * qblocks * batch) | 1);
  const fits = (batch: number) => roomy || sides(batch) <= width / 4 + 1;
  const batch = [4, 2, 1].find((n) => tall / 4 % n === 0 && fits(n)) ?? 1;
  return { batch, pool: Math.max(width / 4, sides(batch), teams === 2 ? (queries > 8 ? 128 : 256) : 0) | 1 };
}

/** Workgroup memory of a tile, bytes. */
export function longBytes(tile: LongTile, width: number): number {
  const { queries, cells } = tile;
  const quads = queries / 4;
  const { pool } = layoutOf(tile, width);
  const chunks = cells / CHUNK;
  return 16 * (queries * pool + 2 * cells * quads + (4 * chunks + 3) * quads) + 4 * chunks;
}

/** Sums of runs of `run` cells. */
export function longKernel(
  { rank, width, kvDtype }: LatentSizes,
  tile: LongTile,
  run: number,
): Kernel {
  const { queries, cells, tall, wide, ahead } = tile;
  const shape = [rank, width, queries, cells, `${tall}x${wide}`, ahead, run, tile.roomy ? 1 : 0, tile.teams ?? 1];
  const name = `latent_long_${kvDtype}_${shape.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const threads = longThreads(tile);
    const quads = queries / 4;
    const { batch, pool } = layoutOf(tile, width);
    const dims = Math.min(threads, MOST_DIMS);
    const TEAMS = tile.teams ?? 1;
    const GROUPS = Math.min(quads, threads / dims / TEAMS);
    const steps = Math.ceil(width / 4 / LANES);
    const counts = {
      RUN: run,
      CELLS: cells,
      CHUNKS: cells / CHUNK,
      FOURS: cells / 4,
      THREADS: threads,
      QUERIES: queries,
      QUADS: quads,
      TQ: tall,
      TC: wide,
      GROUP: ahead,
      STEP_LOOPS: Math.ceil(steps / ahead),
      WIDTH4: width / 4,
      RANK4: rank / 4,
      BATCH: batch,
      ROUNDS: tall / 4 / batch,
      POOL: pool,
      POOL_TURNS: Math.ceil(cells * (queries / tall) * batch / threads),
      WEIGHT_TURNS: Math.ceil(cells * quads / threads),
      GROUPS,
      TEAMS,
      PAIRED: TEAMS - 1,
      HANDS: queries > 8 ? 1 : 2,
      ALONE: Number(queries > 8),
      OWN: quads / GROUPS,
      SPANS: Math.ceil(rank / 4 / (threads / GROUPS / TEAMS)),
      MORE: Number(run > cells),
      QUERY_LOADS: Math.ceil(queries * width / 4 / threads),
      ...{ LANES, LANES_2: 8, LANES_4: 4, LANES_8: 2, CHUNK, FOUR: 4, TWO: 2 },
    };
    const slots = { four: `latent/many/four_${kvDtype}` };
    return kernel(name, shader("latent/latent_long", { slots, counts }), {
      bindings: ["q", "keys", "rows", "pages", "sums", "stats"],
      constants: [
        ...["HEADS", "TABLE_PAGES", "RUNS", "SLOT_QUERIES", "FIRST_ROW", "SCALE", "WINDOW"],
      ],
    });
  });
}
