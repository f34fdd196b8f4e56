/** Which launches of a matmul are worth measuring, and which of the measured ones to keep. Pure. */
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Launch, TuningLimits } from "../../src/gpu/tuning.ts";
import { workgroupBytes } from "./matmul_kernels.ts";
import { lanesOf } from "./matmul_lanes.ts";
import { MANY_ROWS, type MatmulUse } from "./matmul_rows.ts";
import { defaultLaunch, launchStages, shapeOf } from "./matmul_shape.ts";

/** Raise this when kernels, or the launches to measure, change so that earlier measurements and cost tables mislead. */
export const KERNEL_VERSION = 17;

/** Rows of x that launches are measured at: decoding, verifying, small batches, prefill. */
export const MEASURED_ROWS: readonly number[] = [1, 4, 8, 24];

/** Groups of `Tuning.lanes` invocations in a workgroup. */
const GROUPS = [4, 8, 16];

/**
 * A smaller gain than this is noise: with 2 % an H200 chose launches that made a draft step, which runs the same shapes
 * with other epilogues, 6 % slower.
 */
export const MIN_GAIN = 0.08;

/**
 * The variants of a launch to try, one axis after the other: the kind for one row of integers, the groups, the stage.
 */
export function axes(
  matrix: Matrix,
  use: MatmulUse,
  limits: Pick<TuningLimits, "maxComputeWorkgroupStorageSize">,
): ((current: Launch) => Launch[])[] {
  const most = limits.maxComputeWorkgroupStorageSize;
  const fits = (launch: Launch) => bytesNeeded(launch, matrix, use) <= most;
  const stages = launchStages(matrix, use);
  const vary = (others: (current: Launch) => Launch[]) => (current: Launch) =>
    others(current).filter((launch) => !isSame(launch, current) && fits(launch));
  return [
    vary((current) => oneRow(matrix, use, current)),
    vary((current) => GROUPS.map((groups) => ({ ...current, groups }))),
    vary((current) => stages.map((stage) => ({ ...current, stage }))),
  ];
}

/** Whether a launch, for example one from a cache, can be reached from the default one by `axes`. */
export function isLaunch(
  launch: Launch,
  matrix: Matrix,
  use: MatmulUse,
  limits: Pick<TuningLimits, "maxComputeWorkgroupStorageSize">,
): boolean {
  const reach = (current: Launch[], vary: (current: Launch) => Launch[]) => [
    ...current,
    ...current.flatMap(vary),
  ];
  return axes(matrix, use, limits).reduce(reach, [defaultLaunch(matrix, use)])
    .some((possible) => isSame(possible, launch));
}

/**
 * The fastest launch, or the current one if no other is faster by more than noise.
 *
 * @param timed milliseconds of each; the first is the current one.
 */
export function chooseLaunch(
  timed: readonly [Timed, ...Timed[]],
): Launch {
  const [current] = timed;
  const best = timed.reduce((a, b) => b.ms < a.ms ? b : a);
  return best.ms < current.ms * (1 - MIN_GAIN) ? best.launch : current.launch;
}

/** A launch and its milliseconds. */
export interface Timed {
  readonly launch: Launch;
  readonly ms: number;
}

/** Most bytes of workgroup memory that a launch needs at any row count up to its own, or at MANY_ROWS. */
function bytesNeeded(launch: Launch, matrix: Matrix, use: MatmulUse): number {
  const counts = [...Array.from({ length: use.rows }, (_, i) => i + 1), MANY_ROWS];
  const uses = counts.map((rows) => ({ ...use, rows }))
    .filter((use) => launchStages(matrix, use).includes(launch.stage));
  return Math.max(
    ...uses.map((use) => workgroupBytes(shapeOf(matrix, use, launch), lanesOf(matrix, use.tuning))),
  );
}

/**
 * Other staged launches for one row of packed integers: with the next stage prefetched, with one pair of outputs per
 * group, or with both. On an H200 down of Qwen3.6-27B in q4 takes 18.6 us instead of 28.0 (both, in workgroups of 64),
 * its gate-up 29.6 instead of 33.6 (one pair).
 */
function oneRow(matrix: Matrix, use: MatmulUse, current: Launch): Launch[] {
  const shape = shapeOf(matrix, use, current);
  if (use.rows > 1 || shape.kind !== "staged" || shape.dots !== "packed") return [];
  const one: Launch[] = shape.pairs > 1 ? [{ ...current, pairs: 1 }] : [];
  return [...one, ...[current, ...one].map((launch): Launch => ({ ...launch, prefetch: true }))];
}

function isSame(a: Launch, b: Launch): boolean {
  return a.stage === b.stage && a.groups === b.groups && a.pairs === b.pairs &&
    a.prefetch === b.prefetch;
}
