import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { BLOCK_VEC8S, isFp4, type WeightFormat } from "../../src/gpu/weight_format.ts";
import { type Dots, dotsOf, MAX_STEPS, PREFETCH_STAGE } from "../matmul/matmul_stages.ts";
import type { Jobs, TileSize } from "./job_lists.ts";

/** How a matmul of experts is launched. No bit of the result depends on it. */
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

/** Jobs of a tile from which x is prefetched: waiting for it takes long compared with the weights. */
const PREFETCH_TILE = 4;

/**
 * Most packed blocks of a lane that are loaded at once where each job is a tile and weights are packed integers or
 * there are at least MANY_WORKGROUPS workgroups: with fewer registers all of them are in flight at once. A round of
 * GLM-4.7-Flash in q8 takes 3.96 ms instead of 4.05 (H200).
 */
const FEW_BLOCKS = 2;
const MANY_WORKGROUPS = 512;

/**
 * Workgroups from which a group of lanes of fp4 has two pairs of outputs where each job is a tile: with one pair a
 * round of one row of gpt-oss takes 2.12 ms instead of 2.17, one of 4 rows 3.84 instead of 3.79 (H200).
 */
const MANY_FP4_WORKGROUPS = 1024;

/** Bytes of workgroup memory for where the rows of x are, and more. */
const PLACES_BYTES = 256;

/** The same for a job alone, whose workgroup may choose its expert: for the logits of hundreds of experts. */
const CHOICE_BYTES = 4096;

/** Bytes of a vec8 of x in workgroup memory, as floats. */
const VEC8_BYTES = 32;

/** Most packed blocks of a lane that are loaded at once for a job alone. */
const MAX_ALONE = 12;

/**
 * Tile sizes on hardware: [most jobs of an expert on average, tile]. Where few rows have the same expert, the cache
 * serves its weights to the second, and no workgroup has to look for jobs of the same expert: on an H200 with builtin 4
 * and 8 rows of Qwen3.6-35B-A3B in q8 take 4.14 and 5.15 ms, and 4.86 and 5.92 in tiles of 2; those of gpt-oss 3.76 and
 * 5.92, and 5.82 and 8.59. Small tiles of packed integers save registers. Numbers of 4 bits become floats in registers:
 * a prompt of 512 tokens of gpt-oss takes 148 ms with tiles of 4 and 340 with those of 8.
 */
const BY_AVERAGE = {
  floats: [[0.5, 1], [2, 2], [32, 4]],
  packed: [[0.5, 1], [4, 2], [Infinity, 4]],
  fp4: [[2, 1], [Infinity, 4]],
} as const;

/** Most rows for which each job is a tile on hardware, whatever the number of experts. */
export const MAX_ALONE_ROWS = 2;

/** Jobs of an expert that share a tile, where `format` is the matrices'; 1: each is alone. */
export function tileSize(
  { rows, topK, numExperts }: Jobs,
  tuning: Pick<Tuning, "software" | "dot4I8" | "lanes" | "workgroupBytes">,
  format: WeightFormat,
): TileSize {
  const { software } = tuning;
  const average = rows * topK / numExperts;
  if (rows === 1 || !software && rows <= MAX_ALONE_ROWS) return 1;
  // Twice the average, so that few tiles split what could share a read.
  if (software) return TILE_SIZES.find((size) => size >= 2 * average) ?? 8;
  const dots = dotsOf(format, tuning);
  const sizes = BY_AVERAGE[isFp4(format) ? "fp4" : dots === "packed" ? "packed" : "floats"];
  const size = sizes.find(([most]) => average <= most)?.[1] ?? 8;
  // Stages of integers must fit: through the cache they would have other bits than at other numbers of rows.
  const block = BLOCK_VEC8S[format] * tuning.lanes;
  return size === 8 && stageRoom({ dots, tile: size, block }, tuning) === 0 ? 4 : size;
}

/** Packed blocks of each lane that fit into workgroup memory for every job of a tile, `buffers` stages of them. */
function stageRoom(
  { dots, tile, block, buffers = 1 }: {
    readonly dots: Dots;
    readonly tile: TileSize;
    /** Vec8s of a block of every lane. */
    readonly block: number;
    readonly buffers?: number;
  },
  { workgroupBytes }: Pick<Tuning, "workgroupBytes">,
): number {
  if (dots === "packed") return Infinity; // at most 9 KiB of bytes and steps
  const room = workgroupBytes - (tile === 1 ? CHOICE_BYTES : PLACES_BYTES);
  return Math.floor(room / (VEC8_BYTES * tile * block * buffers));
}

/**
 * Invocations that share an output of experts, the same at any number of jobs. fp4 rows whose width gives few whole
 * lanes (2,880 numbers of gpt-oss are 90 blocks: 2 lanes) are packed for those few, but all lanes of the adapter share
 * an output: few lanes would have long sums, and a job of one row too few workgroups.
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
 * @param of `tile`: jobs of a tile; `outputs`: of all jobs together; `picked`: whether subgroups choose the experts.
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
  // Where more lanes share an output than rows are packed for, the last stage may be partial.
  if (tuning.software || !whole && lanes === matrix.lanes) return { kind: "cached", ...even };
  const dots = dotsOf(format, tuning);
  const each = Math.ceil(cols / 8 / block);
  const twice = stageRoom({ dots, tile, block, buffers: 2 }, tuning);
  const short = dots === "packed" || block <= PREFETCH_STAGE;
  if (whole && tile >= PREFETCH_TILE && short && twice > 0) {
    const stage = block * steps(each, Math.min(twice, Math.max(1, PREFETCH_STAGE / block)));
    // With many jobs an invocation computes twice as many outputs from each x that it reads.
    return { kind: "prefetch", dots, stage, ...even, pairs: 2 * tuning.pairs };
  }
  const workgroups = outputs / (2 * tuning.pairs * groups);
  if (isFp4(format)) {
    const pairs = tile > 1 ? 2 * tuning.pairs : workgroups < MANY_FP4_WORKGROUPS ? 1 : tuning.pairs;
    // Longer stages have more loads in flight but fewer workgroups at a time: 16 rows of gpt-oss's gate-up take 200 us
    // in these, 214 in stages of two blocks and 223 in those of three (lab/mxfp4.ts on an H200).
    return { kind: "staged", dots, stage: block, ...even, pairs };
  }
  const many = tile === 1 && workgroups >= MANY_WORKGROUPS;
  const packed = tile === 1 && dots === "packed";
  const most = many || packed ? FEW_BLOCKS : MAX_STEPS;
  // If there are few workgroups of integers and choosing experts is cheap, twice as many workgroups are faster.
  const pairs = picked && !many && packed ? tuning.pairs / 2 : tuning.pairs;
  const room = stageRoom({ dots, tile, block }, tuning);
  if (room === 0) return { kind: "cached", ...even };
  const wanted = stagedSteps(each, tile, most);
  // A row of whole lanes is a multiple of its stages.
  const fitting = wanted <= room ? wanted : whole ? steps(each, Math.min(most, room)) : room;
  return { kind: "staged", dots, stage: block * fitting, ...even, pairs };
}

/**
 * Blocks of a lane in a stage. If only 1 divides them evenly, a job alone takes all: its sums leave enough registers.
 */
function stagedSteps(each: number, tile: number, most: number): number {
  const few = steps(each, most);
  return few === 1 && tile === 1 && each <= MAX_ALONE ? each : few;
}

/** The largest divisor of `each`, a lane's blocks, that is at most `most`. */
function steps(each: number, most: number): number {
  let count = Math.min(each, most);
  while (each % count !== 0) count--;
  return count;
}
