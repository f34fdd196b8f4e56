import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { FloatFormat, Table } from "../../src/gpu/matrix.ts";
import { shader } from "../shader.ts";
import { type LatentHeads, type LatentLaunch, MOST_ROWS, onlyShard, rowTile } from "./latent.ts";
import type { LatentRuns } from "./latent_attention.ts";
import { runsOf } from "./latent_kernels.ts";

/** Outputs of a group of lanes where rows are few and where they share reads, and groups of a workgroup. */
const OUTS = { few: 2, many: 4 };
const GROUPS = 8;
/** Lanes that share a sum. */
const LANES = 16;
/** Most rows whose runs are added by every workgroup of a head: adding is less than a launch. */
const MERGED_ROWS = 4;

/** Whether `latentRunsValue` beats adding the runs first. None of it touches a bit of the result. */
export function mergesRuns({ count, tuning }: Pick<LatentLaunch, "count" | "tuning">): boolean {
  return count <= MERGED_ROWS && !tuning.software;
}

const kernels = new Map<string, Kernel>();

/**
 * Records `out[r, h] = W_h attentionOutput[r, h]`: weighted sums of latents, [count, heads, rank + rope] of
 * which the rope part is not read, become weighted sums of values, [count, heads, value].
 */
export function latentValue(
  { kvB, attentionOutput, out, scales }: {
    readonly kvB: Table;
    readonly attentionOutput: Operand;
    readonly out: Operand;
    /** Of out's rows, f32 [count], the largest before: lowered. */
    readonly scales?: Operand | undefined;
  },
  shape: LatentHeads & LatentLaunch,
): Dispatch {
  const { heads, value, rank, count, tuning: { software }, label } = shape;
  const ROWS = rowTile(count);
  const outs = count <= MOST_ROWS ? OUTS.few : OUTS.many;
  const lanes = software ? 1 : LANES;
  const width = rank + shape.rope;
  const size = 4 * count * heads * width;
  const { weights, blocks, constants, bytes, flops } = sharedOf(kvB, shape, outs);
  return dispatch(valueKernel(kvB.format, { ROWS, outs, lanes, notes: scales !== undefined }), {
    buffers: { weights, x: { ...attentionOutput, size }, out, ...noted(scales).buffers },
    constants: { ...constants, WIDTH: width, ...noted(scales).constants },
    workgroups: [heads * blocks, Math.ceil(count / ROWS)],
    label,
    work: { bytes: bytes + size + 4 * count * heads * value, flops },
  });
}

/** Records the same of the runs of cells that attention leaves, for few rows. */
export function latentRunsValue(
  { kvB, out, scales }: {
    readonly kvB: Table;
    readonly out: Operand;
    readonly scales?: Operand | undefined;
  },
  { sums, stats, rows, run, runs, firstRow, window, forCells }: LatentRuns,
  shape: LatentHeads & LatentLaunch,
): Dispatch {
  const { heads, value, rank, count, label } = shape;
  const { weights, blocks, constants, bytes, flops } = sharedOf(kvB, shape, OUTS.few);
  return dispatch(runsValueKernel(kvB.format, { rank, run, notes: scales !== undefined }), {
    buffers: { weights, sums, out, stats, rows, ...noted(scales).buffers },
    constants: {
      ...{ ...constants, RUNS: runs, FIRST_ROW: firstRow, COUNT: count },
      WINDOW: window ?? 0xffffffff,
      ...noted(scales).constants,
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
  outs: number,
) {
  const weights = onlyShard(kvB);
  const blocks = Math.ceil(value / GROUPS / outs);
  return {
    weights,
    blocks,
    constants: { HEADS: heads, NOPE: nope, VALUE: value, VEC8S: rank / 8, BLOCKS: blocks },
    bytes: bytesOf(weights) * value / (nope + value),
    flops: 2 * count * heads * value * rank,
  };
}

const CONSTANTS = ["HEADS", "NOPE", "VALUE", "VEC8S", "BLOCKS"] as const;

function noted(scales: Operand | undefined) {
  return scales
    ? { buffers: { scales }, constants: { NOTED_FIRST: 0 } }
    : { buffers: {}, constants: {} };
}

function noteOf(notes: boolean) {
  return {
    suffix: notes ? "_scale" : "",
    slot: `attention/note_${notes ? "scale" : "nothing"}`,
    bindings: notes ? ["scales"] : [],
    constants: notes ? ["NOTED_FIRST"] : [],
  };
}

function valueKernel(
  format: FloatFormat,
  { ROWS, outs, lanes, notes }: {
    readonly ROWS: number;
    readonly outs: number;
    readonly lanes: number;
    readonly notes: boolean;
  },
): Kernel {
  const note = noteOf(notes);
  const name = `latent_value_${format}_${ROWS}x${outs}_${lanes}${note.suffix}`;
  return kernels.getOrInsertComputed(name, () => {
    const slots = {
      weights: `weights/weights_${format}`,
      latents: "latent/latent_value_mixed",
      note: note.slot,
    };
    const counts = { ROWS, ...countsOf(outs, lanes), ...loads(ROWS <= 2 && lanes > 1) };
    return kernel(name, shader("latent/latent_value", { slots, counts }), {
      bindings: ["weights", "x", "out", ...note.bindings],
      constants: [...CONSTANTS, "WIDTH", ...note.constants],
    });
  });
}

function runsValueKernel(
  format: FloatFormat,
  { rank, run, notes }: { readonly rank: number; readonly run: number; readonly notes: boolean },
): Kernel {
  const note = noteOf(notes);
  const name = `latent_value_${format}_runs_${rank}_${run}${note.suffix}`;
  return kernels.getOrInsertComputed(name, () => {
    const runs = runsOf(rank, run);
    const slots = {
      weights: `weights/weights_${format}`,
      latents: "latent/latent_value_runs",
      runs: runs.text,
      note: note.slot,
    };
    const counts = {
      ...runs.counts,
      ROWS: 1,
      ...countsOf(OUTS.few, LANES),
      ...loads(true),
    };
    return kernel(name, shader("latent/latent_value", { slots, counts }), {
      bindings: ["weights", "sums", "out", "stats", "rows", ...note.bindings],
      constants: [
        ...[...CONSTANTS, "RUNS", "FIRST_ROW", "COUNT", "WINDOW"],
        ...note.constants,
      ],
    });
  });
}

function countsOf(OUTS: number, SHARERS: number): Record<string, number> {
  return { OUTS, SHARERS, THREADS: SHARERS * GROUPS };
}

/** Weights ahead of what they are multiplied with, where registers allow. */
function loads(early: boolean): Record<string, number> {
  return { AHEAD: early ? 4 : 1, EARLY: Number(early), LATE: Number(!early) };
}
