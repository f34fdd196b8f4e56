import {
  BLOCK_VEC8S,
  isFp4,
  isInteger,
  type Matrix,
  type Tuning,
  type WeightFormat,
} from "../../src/gpu/matrix.ts";
import type { Dots } from "../matmul/matmul_stages.ts";
import type { Jobs, TileSize } from "./job_lists.ts";

/** How a matmul of experts is launched. None of it touches a bit of the result. */
export type ExpertShape =
  & {
    /** Jobs of an expert that share a workgroup; 1: there are no lists. */
    readonly tile: number;
    /** Output pairs of a group of lanes. */
    readonly pairs: number;
    /** Groups of the matrix's lanes in a workgroup. */
    readonly groups: number;
  }
  & (
    | { readonly kind: "cached" }
    | {
      readonly kind: "staged" | "prefetch";
      readonly dots: Dots;
      /** Vec8s of k that pass through workgroup memory at a time. */
      readonly stage: number;
    }
  );

/** Tiles of software adapters. */
const TILE_SIZES = [2, 4, 8] as const;

/** Tiles from here on have x prefetched: waiting for it takes long beside the weights. */
const PREFETCH_TILE = 4;

/** Vec8s of x in a stage whose follower is prefetched. */
const PREFETCH_STAGE = 32;

/** Packed blocks of a lane that are loaded at once. */
const MOST_STEPS = 4;

/**
 * The same of jobs alone in that many workgroups and more: with fewer registers all of them are on their way at
 * once, measured on an H200.
 */
const MOST_OF_MANY = 2;
const MANY_WORKGROUPS = 512;

/** Bytes of workgroup memory for where the rows of x are, and more. */
const PLACES_BYTES = 256;

/** The same for a job alone. */
const MOST_ALONE = 12;

/** Tiles of hardware by the most jobs that an expert has on average; packed integers want few registers. */
const BY_AVERAGE = { floats: [[2, 2], [32, 4]], packed: [[4, 2], [Infinity, 4]] } as const;

/**
 * Most rows whose jobs are all alone on hardware: what two rows share of an expert comes from the cache, and nobody
 * has to look for it.
 */
export const MOST_ALONE_ROWS = 2;

/** Jobs of an expert that share a tile, where `format` is the matrices'; 1: each is alone. */
export function tileSize(
  { rows, topK, numExperts }: Jobs,
  { software, packedRows }: Pick<Tuning, "software" | "packedRows">,
  format: WeightFormat,
): TileSize {
  const average = rows * topK / numExperts;
  if (rows === 1 || !software && rows <= MOST_ALONE_ROWS) return 1;
  // Twice the average, so that few tiles split what could share a read.
  if (software) return TILE_SIZES.find((size) => size >= 2 * average) ?? 8;
  const sizes = BY_AVERAGE[isInteger(format) && packedRows > 0 ? "packed" : "floats"];
  return sizes.find(([most]) => average <= most)?.[1] ?? 8;
}

/**
 * Invocations that share an output of experts, at all numbers of jobs alike. Rows of fp4 of a width that leaves few
 * whole lanes (2,880 numbers of gpt-oss are 90 blocks: 2 lanes) are packed for those, and shared by all that the
 * adapter has: few lanes have long sums, and a job of one row too few workgroups.
 */
export function expertLanes(
  { format, lanes }: Pick<Matrix, "format" | "lanes">,
  tuning: Pick<Tuning, "software" | "lanes">,
): number {
  const few = isFp4(format) && !tuning.software && lanes > 1;
  return few ? Math.max(lanes, tuning.lanes) : lanes;
}

/**
 * The launch of tiles; on hardware staged wherever a lane has whole blocks, whatever the tile.
 *
 * @param of its jobs; `outputs` of all of them together, `picked` where subgroups choose the experts.
 */
export function expertShape(
  matrix: Matrix,
  { tile, outputs, picked = false }: {
    readonly tile: TileSize;
    readonly outputs: number;
    readonly picked?: boolean;
  },
  tuning: Tuning,
): ExpertShape {
  const { format, cols } = matrix;
  const lanes = expertLanes(matrix, tuning);
  const groups = tuning.groups * tuning.lanes / lanes;
  const even = { tile, pairs: tuning.pairs, groups };
  const block = BLOCK_VEC8S[format] * lanes;
  const whole = cols / 8 % block === 0;
  // Where more lanes share an output than rows are packed for, the last stage may be a part of one.
  if (tuning.software || !whole && lanes === matrix.lanes) return { kind: "cached", ...even };
  const dots = dotsOf(matrix, tile, tuning);
  const each = Math.ceil(cols / 8 / block);
  if (whole && tile >= PREFETCH_TILE && (dots === "packed" || block <= PREFETCH_STAGE)) {
    const stage = block * steps(each, Math.max(1, PREFETCH_STAGE / block));
    // Many jobs let an invocation make twice as many outputs of each x that it reads.
    return { kind: "prefetch", dots, stage, ...even, pairs: 2 * tuning.pairs };
  }
  const many = tile === 1 && outputs >= MANY_WORKGROUPS * 2 * tuning.pairs * groups;
  const most = many ? MOST_OF_MANY : MOST_STEPS;
  // Few workgroups of integers have time for more of them, if choosing costs each little.
  const pairs = picked && !many && dots === "packed" ? tuning.pairs / 2 : tuning.pairs;
  const stage = block * stagedSteps(each, tile, most);
  if (!isFp4(format)) return { kind: "staged", dots, stage, ...even, pairs };
  const room = Math.floor((tuning.workgroupBytes - PLACES_BYTES) / 32 / tile / block);
  if (room === 0) return { kind: "cached", ...even };
  return { kind: "staged", dots, stage: Math.min(stage, block * room), ...even, pairs };
}

/** Where few blocks do not divide a lane's, all of them for a job alone: its sums leave registers. */
function stagedSteps(each: number, tile: number, most: number): number {
  const few = steps(each, most);
  return few === 1 && tile === 1 && each <= MOST_ALONE ? each : few;
}

function dotsOf({ format }: Matrix, tile: number, { packedRows }: Tuning): Dots {
  if (!isInteger(format)) return "floats";
  return tile <= packedRows ? "packed" : "whole";
}

/** The most blocks, up to `most`, that a lane's divide into. */
function steps(each: number, most: number): number {
  let count = Math.min(each, most);
  while (each % count !== 0) count--;
  return count;
}
