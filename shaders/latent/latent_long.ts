/** Attention over latents of few rows without paths at long contexts. */
import { type Kernel, kernel } from "../../src/gpu/kernel.ts";
import { shader } from "../shader.ts";
import { CHUNK, type LatentSizes } from "./latent_kernels.ts";

/** How the workgroups of latent_long.wgsl share scores and values. None of it touches a bit of the result. */
export interface LongTile {
  /** Of a workgroup: 4 or 8. */
  readonly queries: number;
  /** Cells at a time, whole chunks. */
  readonly cells: number;
  /** Cells of an invocation, for the scores. */
  readonly wide: number;
  /** Steps of 16 fours whose latents are on their way, unrolled. */
  readonly ahead: number;
  /** The same, by registers that change places. */
  readonly deep?: number;
  /** Of invocations that share the chunks where values are made: 1 or 2. */
  readonly teams?: number;
  readonly roomy?: boolean;
  readonly bunches?: number;
}

/** Lanes that share a score, and the most fours of a latent side by side where values are made. */
const LANES = 16;
const MOST_DIMS = 128;

const kernels = new Map<string, Kernel>();

export function longThreads({ cells, wide }: LongTile): number {
  return LANES * cells / wide;
}

/** Fours of queries of an invocation whose lanes' sums are added at a time: as queries' place has room for. */
function layoutOf({ queries, cells, roomy, teams, wide }: LongTile, width: number) {
  const threads = longThreads({ queries, cells, wide, ahead: 1 });
  const sides = (batch: number) => 2 * ((cells * batch) | 1);
  const fits = (batch: number) => roomy || sides(batch) <= width / 4 + 1;
  const batch = [2, 1].find((n) => queries / 4 % n === 0 && fits(n) && cells * n <= threads) ?? 1;
  return { batch, pool: Math.max(width / 4, sides(batch), teams === 2 ? 256 : 0) | 1 };
}

/** Workgroup memory of a tile, bytes. */
export function longBytes(tile: LongTile, width: number): number {
  const { queries, cells } = tile;
  const { pool } = layoutOf(tile, width);
  const chunks = cells / CHUNK;
  return 16 * 8 * pool + 4 * queries * (2 * cells + 4 * chunks + 3) + 4 * chunks;
}

/** Sums of runs of `run` cells. */
export function longKernel(
  { rank, width, kvDtype }: LatentSizes,
  tile: LongTile,
  run: number,
): Kernel {
  const { queries, cells, wide, ahead, deep = 0, teams = 1, roomy = false, bunches = 2 } = tile;
  const shape = [rank, width, queries, cells, wide, ahead, deep, teams, Number(roomy), bunches];
  const name = `latent_long_${kvDtype}_${shape.join("_")}_${run}`;
  return kernels.getOrInsertComputed(name, () => {
    const threads = longThreads(tile);
    const quads = queries / 4;
    const { batch, pool } = layoutOf(tile, width);
    const dims = Math.min(threads, MOST_DIMS);
    const GROUPS = Math.min(quads, threads / dims / teams);
    const steps = Math.ceil(width / 4 / LANES);
    const counts = {
      RUN: run,
      CELLS: cells,
      FOURS: cells / 4,
      THREADS: threads,
      QUERIES: queries,
      QUADS: quads,
      TC: wide,
      GROUP: ahead,
      DEEP: deep,
      DEEP_LESS: Math.max(0, deep - 1),
      FLAT: Number(deep === 0),
      TURNED: Number(deep > 0),
      STEP_LOOPS: Math.ceil(steps / ahead),
      WIDTH4: width / 4,
      RANK4: rank / 4,
      BATCH: batch,
      ROUNDS: quads / batch,
      POOL: pool,
      GROUPS,
      TEAMS: teams,
      PAIRED: teams - 1,
      OWN: quads / GROUPS,
      BUNCHES: bunches,
      SPANS: Math.ceil(rank / 4 / (threads / GROUPS / teams)),
      MORE: Number(run > cells),
      QUERY_LOADS: Math.ceil(width / 4 / (threads / queries)),
      ...{ FOUR: 4, EIGHT: 8 },
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
