import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { Table } from "../../src/gpu/matrix.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { kernelOf } from "../shader.ts";
import {
  type LatentHeads,
  type LatentLaunch,
  MAX_ROWS,
  onlyShard,
  rowTile,
} from "./latent_prepare.ts";
import type { LatentRuns } from "./latent_attention.ts";
import { runsOf, type RunsParameters } from "./latent_kernels.ts";

/** Outputs of a group of lanes where rows are few and where they share reads, and groups of a workgroup. */
const OUTS = { few: 2, many: 4 };
const GROUPS = 8;
/** Lanes that share a sum. */
const LANES = 16;
/** Most fours of a latent whose runs a workgroup adds at a time. */
const MAX_QUADS = 128;
/** Most rows whose runs every workgroup of a head adds for itself: this takes less time than a launch. */
const MERGED_ROWS = 4;

/** Whether `latentRunsValue` is faster than adding the runs first. The bits are the same. */
export function mergesRuns({ count, tuning }: Pick<LatentLaunch, "count" | "tuning">): boolean {
  return count <= MERGED_ROWS && !tuning.software;
}

/** kv_b_proj, [heads (nope + value), rank], and where values are stored. */
interface ValueBuffers {
  readonly kvB: Table;
  /** [count, heads, value] */
  readonly out: Operand;
  /** f32 [count], the largest before: gets the scales of out's rows (kernels/lib/scale_of.wgsl). */
  readonly scales?: Operand | undefined;
}

/** The additional buffer and constant of a kernel that reduces the scales of its rows. */
function scalesOf(scales: Operand | undefined) {
  return {
    reduces: scales !== undefined,
    buffers: scales ? { scales } : {},
    first: scales ? { FIRST_SCALE: 0 } : {},
  };
}

/**
 * Records `out[r, h] = W_h attentionOutput[r, h]`: weighted sums of latents, [count, heads, rank + rope] of
 * which the rope part is not read, become weighted sums of values, [count, heads, value].
 */
export function latentValue(
  { kvB, attentionOutput, out, scales }: ValueBuffers & { readonly attentionOutput: Operand },
  shape: LatentHeads & LatentLaunch,
): Dispatch {
  const { heads, value, rank, count, tuning: { software }, label } = shape;
  const ROWS = rowTile(count);
  const outs = count <= MAX_ROWS ? OUTS.few : OUTS.many;
  const lanes = software ? 1 : LANES;
  const width = rank + shape.rope;
  const size = 4 * count * heads * width;
  const { weights, blocks, constants, bytes, flops } = sharedOf(kvB, shape, GROUPS * outs);
  const { reduces, buffers, first } = scalesOf(scales);
  return dispatch(valueKernel(kvB.format, { ROWS, outs, lanes, reduces }), {
    buffers: { weights, x: { ...attentionOutput, size }, out, ...buffers },
    constants: { ...constants, WIDTH: width, ...first },
    workgroups: [heads * blocks, Math.ceil(count / ROWS)],
    label,
    work: { bytes: bytes + size + 4 * count * heads * value, flops },
  });
}

/** Records the same from the runs of cells whose sums attention stored, for few rows. */
export function latentRunsValue(
  { kvB, out, scales }: ValueBuffers,
  { sums, stats, rows, run, runs, firstRow, window, forCells }: LatentRuns,
  shape: LatentHeads & LatentLaunch & {
    /** Of a workgroup; default: as many as a row reduction takes. */
    readonly threads?: number;
  },
): Dispatch {
  const { heads, value, rank, count, label, threads = shape.tuning.rowLanes } = shape;
  const each = threads / LANES * OUTS.few;
  const { weights, blocks, constants, bytes, flops } = sharedOf(kvB, shape, each);
  const { reduces, buffers, first } = scalesOf(scales);
  return dispatch(runsValueKernel(kvB.format, { rank, run, threads, reduces }), {
    buffers: { weights, sums, out, stats, rows, ...buffers },
    constants: {
      ...constants,
      ...first,
      RUNS: runs,
      FIRST_ROW: firstRow,
      COUNT: count,
      WINDOW: window ?? 0xffffffff,
    },
    workgroups: [heads * blocks, count],
    forCells,
    label,
    work: {
      bytes: bytes + 4 * count * heads * value,
      flops,
      context: {
        bytesPerCell: 4 * heads * (rank + 2) / run,
        flopsPerCell: 2 * count * heads * rank / run,
        window,
      },
    },
  });
}

function sharedOf(
  kvB: Table,
  { heads, nope, value, rank, count }: LatentHeads & LatentLaunch,
  outs: number, // of a workgroup
) {
  const weights = onlyShard(kvB);
  const blocks = Math.ceil(value / outs);
  return {
    weights,
    blocks,
    constants: { HEADS: heads, NOPE: nope, VALUE: value, VEC8S: rank / 8, BLOCKS: blocks },
    bytes: bytesOf(weights) * value / (nope + value),
    flops: 2 * count * heads * value * rank,
  };
}

type LatentValueParameters =
  & {
    /** Format of kv_b_proj. */
    readonly weights: FloatFormat;
    /** Whether the scales of out's rows are reduced. */
    readonly REDUCES_SCALE: boolean;
    /** Rows of a workgroup, and outputs of a group of lanes. */
    readonly ROWS: number;
    readonly OUTS: number;
    /** Lanes that share an output. */
    readonly SHARERS: number;
    /** Loads of weights that a lane asks for at a time, and whether it does before x is there. */
    readonly AHEAD: number;
    readonly EARLY: boolean;
  }
  & (
    | {
      /** Whether the weighted sums of latents are ready, and not in runs. */
      readonly MERGED: true;
      /** Invocations of a workgroup. */
      readonly THREADS: number;
    }
    | RunsParameters & { readonly MERGED: false }
  );

function valueKernel(
  format: FloatFormat,
  { ROWS, outs, lanes, reduces }: {
    readonly ROWS: number;
    readonly outs: number;
    readonly lanes: number;
    readonly reduces: boolean;
  },
): Kernel {
  const name = `latent_value_${format}_${ROWS}x${outs}_${lanes}${reduces ? "_scale" : ""}`;
  const parameters = {
    weights: format,
    MERGED: true as const,
    REDUCES_SCALE: reduces,
    ROWS,
    OUTS: outs,
    SHARERS: lanes,
    THREADS: lanes * GROUPS,
    ...loads(ROWS <= 2 && lanes > 1),
  };
  return kernelOf<LatentValueParameters>("mla/latent_value")(parameters, { name });
}

function runsValueKernel(
  format: FloatFormat,
  { rank, run, threads, reduces }: {
    readonly rank: number;
    readonly run: number;
    readonly threads: number;
    readonly reduces: boolean;
  },
): Kernel {
  const name = `latent_value_${format}_runs_${rank}_${run}_${threads}${reduces ? "_scale" : ""}`;
  const runs = runsOf({ rank, run, threads, quads: Math.min(rank / 4, MAX_QUADS) });
  const parameters = {
    weights: format,
    MERGED: false as const,
    REDUCES_SCALE: reduces,
    ROWS: 1,
    OUTS: OUTS.few,
    SHARERS: LANES,
    ...loads(true),
    ...runs,
  };
  return kernelOf<LatentValueParameters>("mla/latent_value")(parameters, { name });
}

/** How many weights a lane loads at a time; early loads, before x is there, need registers. */
function loads(early: boolean): { readonly AHEAD: number; readonly EARLY: boolean } {
  return { AHEAD: early ? 4 : 1, EARLY: early };
}
