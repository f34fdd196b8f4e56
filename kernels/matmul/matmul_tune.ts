/** Which launches of a matmul are worth measuring, and which of the measured ones to keep. Pure. */
import type { Launch, Matrix, TuningLimits } from "../../src/gpu/matrix.ts";
import { workgroupBytes } from "./matmul_kernels.ts";
import { lanesOf } from "./matmul_lanes.ts";
import { MANY_ROWS, type MatmulUse } from "./matmul_rows.ts";
import { defaultLaunch, launchStages, shapeOf } from "./matmul_shape.ts";

/** Raise it when the matmul kernels or the launches to measure change: what was measured before counts no more. */
export const KERNEL_VERSION = 13;

/** Rows of x that launches are measured at: decoding, verifying, small batches, prefill. */
export const MEASURED_ROWS: readonly number[] = [1, 4, 8, 24];

/** Groups of `Tuning.lanes` invocations in a workgroup. */
const GROUPS = [4, 8, 16];

/**
 * Less gain than this is noise: with 2 % an H200 chose launches that made a draft step 6 % slower, which
 * runs the same shapes with other epilogues.
 */
const LEAST_GAIN = 0.08;

/** What is tried of a launch, one after the other: another way for one row of integers, other groups, other stages. */
export function axes(
  matrix: Matrix,
  use: MatmulUse,
  limits: Pick<TuningLimits, "maxComputeWorkgroupStorageSize">,
): ((held: Launch) => Launch[])[] {
  const most = limits.maxComputeWorkgroupStorageSize;
  const fits = (launch: Launch) => bytesNeeded(launch, matrix, use) <= most;
  const stages = launchStages(matrix, use);
  const vary = (others: (held: Launch) => Launch[]) => (held: Launch) =>
    others(held).filter((launch) => !isSame(launch, held) && fits(launch));
  return [
    vary((held) => oneRow(matrix, use, held)),
    vary((held) => GROUPS.map((groups) => ({ ...held, groups }))),
    vary((held) => stages.map((stage) => ({ ...held, stage }))),
  ];
}

/** Whether a launch, of a cache say, is one that `axes` leads to from the default. */
export function isLaunch(
  launch: Launch,
  matrix: Matrix,
  use: MatmulUse,
  limits: Pick<TuningLimits, "maxComputeWorkgroupStorageSize">,
): boolean {
  const reach = (held: Launch[], vary: (held: Launch) => Launch[]) => [
    ...held,
    ...held.flatMap(vary),
  ];
  return axes(matrix, use, limits).reduce(reach, [defaultLaunch(matrix, use)])
    .some((possible) => isSame(possible, launch));
}

/**
 * The fastest, or else the held one where none is faster by more than noise.
 *
 * @param timed milliseconds of each; the first is the held one.
 */
export function chooseLaunch(
  timed: readonly [Timed, ...Timed[]],
): Launch {
  const [held] = timed;
  const best = timed.reduce((a, b) => b.ms < a.ms ? b : a);
  return best.ms < held.ms * (1 - LEAST_GAIN) ? best.launch : held.launch;
}

/** A launch and its milliseconds. */
export interface Timed {
  readonly launch: Launch;
  readonly ms: number;
}

/** Workgroup memory of a launch at those row counts that need most: up to its own, and of many. */
function bytesNeeded(launch: Launch, matrix: Matrix, use: MatmulUse): number {
  const counts = [...Array.from({ length: use.rows }, (_, i) => i + 1), MANY_ROWS];
  const uses = counts.map((rows) => ({ ...use, rows }))
    .filter((use) => launchStages(matrix, use).includes(launch.stage));
  return Math.max(
    ...uses.map((use) => workgroupBytes(shapeOf(matrix, use, launch), lanesOf(matrix, use.tuning))),
  );
}

/**
 * Other launches of one row of packed integers by stages: with the next stage prefetched, with one pair of outputs for
 * a group. Of Qwen3.6-27B in q4 down takes 18.6 us of 28.0 on an H200 (both, in workgroups of 64), gate-up 29.6 of 33.6
 * (one pair).
 */
function oneRow(matrix: Matrix, use: MatmulUse, held: Launch): Launch[] {
  const shape = shapeOf(matrix, use, held);
  if (use.rows > 1 || shape.kind !== "staged" || shape.dots !== "packed") return [];
  const one: Launch[] = shape.pairs > 1 ? [{ ...held, pairs: 1 }] : [];
  return [...one, ...[held, ...one].map((launch): Launch => ({ ...launch, prefetch: true }))];
}

function isSame(a: Launch, b: Launch): boolean {
  return a.stage === b.stage && a.groups === b.groups && a.pairs === b.pairs &&
    a.prefetch === b.prefetch;
}
