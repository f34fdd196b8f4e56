import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { kernelOf } from "../shader.ts";

/**
 * The jobs of `rows` rows: row r's k-th expert is job r topK + k. Experts that every row has are
 * counted by both numbers, and are the last.
 */
export interface Jobs {
  readonly rows: number;
  /** Experts of a row. */
  readonly topK: number;
  readonly numExperts: number;
}

/** Jobs of one expert that share a tile at most; any number is possible. */
export type TileSize = number;

const JOB_LISTS = kernelOf("experts/job_lists")({}, {
  name: "job_lists",
  bindings: ["experts", "tiles"],
  constants: ["EXPERTS", "TILES", "TILE", "LANES"],
});

const HARDWARE_LANES = 512;
const SOFTWARE_LANES = 8;

/** Most tiles that jobs can make: every expert that has any fills all its tiles but one. */
export function maxTiles({ rows, topK, numExperts }: Jobs, tile: TileSize): number {
  const total = rows * topK;
  const used = Math.min(total, numExperts);
  return used + Math.floor((total - used) / tile);
}

/** u32 words of the list of `jobs` in tiles: [maxTiles, 1 + tile]. */
export function listWords(jobs: Jobs, tile: TileSize): number {
  return maxTiles(jobs, tile) * (1 + tile);
}

/**
 * Records the list of jobs in tiles of one expert each. `experts` is u32 [rows, topK], each below
 * numExperts; `tiles` gets u32 [maxTiles, 1 + tile]: the expert and its jobs (job_lists.wgsl).
 */
export function jobLists(
  { experts, tiles }: { readonly experts: Operand; readonly tiles: Operand },
  { tile, tuning: { software, rowLanes }, label, ...jobs }: Jobs & {
    readonly tile: TileSize;
    readonly tuning: Pick<Tuning, "software" | "rowLanes">;
    readonly label: string;
  },
): Dispatch {
  return dispatch(JOB_LISTS, {
    // The kernel computes the number of jobs from its size.
    buffers: { experts: { ...experts, size: 4 * jobs.rows * jobs.topK }, tiles },
    constants: {
      EXPERTS: jobs.numExperts,
      TILES: maxTiles(jobs, tile),
      TILE: tile,
      LANES: software ? SOFTWARE_LANES : Math.min(HARDWARE_LANES, rowLanes),
    },
    workgroups: [1],
    label,
  });
}
