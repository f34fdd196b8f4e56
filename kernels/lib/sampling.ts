import { foldCounts, type FoldParameters } from "./workgroup.ts";

/** What lib/sampling.wgsl takes. */
export interface SamplingParameters extends FoldParameters {
  /** Loads that a lane has under way at once. */
  readonly UNROLL: number;
}

/** @param lanes invocations of a workgroup, a power of two. */
export function samplingCounts(lanes: number): SamplingParameters {
  // Loads that a lane has in flight; few lanes are those of a CPU, which gains nothing from more than one.
  return { UNROLL: lanes < 64 ? 1 : 4, ...foldCounts(lanes) };
}
