import { BLOCK_VEC8S, isInteger, type Matrix, type Tuning } from "../../src/gpu/matrix.ts";
import type { Dots } from "../matmul/matmul_shape.ts";
import type { Jobs } from "./job_lists.ts";

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

const TILE_SIZES = [2, 4, 8] as const;

/** Tiles from here on have x prefetched: waiting for it takes long beside the weights. */
const PREFETCH_TILE = 8;

/** Vec8s of x in a stage whose follower is prefetched. */
const PREFETCH_STAGE = 32;

/** Packed blocks of a lane that are loaded at once. */
const MOST_STEPS = 4;

/** Twice what an expert gets on average, so that few tiles split what could share a read. */
export function tileSize({ rows, topK, numExperts }: Jobs): number {
  if (rows === 1) return 1;
  return TILE_SIZES.find((size) => size >= 2 * rows * topK / numExperts) ?? 8;
}

/** The launch of the jobs; on hardware staged wherever a lane has whole blocks, at any number of rows. */
export function expertShape(matrix: Matrix, jobs: Jobs, tuning: Tuning): ExpertShape {
  const { format, cols, lanes } = matrix;
  const tile = tileSize(jobs);
  const groups = tuning.groups * tuning.lanes / lanes;
  const even = { tile, pairs: tuning.pairs, groups };
  if (tuning.software || cols / 8 % (BLOCK_VEC8S[format] * lanes) !== 0) {
    return { kind: "cached", ...even };
  }
  const dots = dotsOf(matrix, tile, tuning);
  const block = BLOCK_VEC8S[format] * lanes;
  const each = cols / 8 / block;
  if (tile >= PREFETCH_TILE && block <= PREFETCH_STAGE) {
    const stage = block * mostSteps(each, PREFETCH_STAGE / block);
    return { kind: "prefetch", dots, stage, ...even };
  }
  return { kind: "staged", dots, stage: block * mostSteps(each, MOST_STEPS), ...even };
}

function dotsOf({ format }: Matrix, tile: number, { packedRows }: Tuning): Dots {
  if (!isInteger(format)) return "floats";
  return tile <= packedRows ? "packed" : "whole";
}

/** The most blocks, up to `most`, that a lane's divide into. */
function mostSteps(each: number, most: number): number {
  let steps = Math.min(each, most);
  while (each % steps !== 0) steps--;
  return steps;
}
