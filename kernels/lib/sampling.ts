import { foldCounts, type FoldParameters } from "./workgroup.ts";

/** What lib/sampling.wgsl takes. */
export interface SamplingParameters extends FoldParameters {
  /** Loads that a lane has under way at once. */
  readonly UNROLL: number;
  /** Sums that a lane has side by side. */
  readonly QUADS: number;
}

/** @param lanes invocations of a workgroup, a power of two. */
export function samplingCounts(lanes: number): SamplingParameters {
  // Loads in flight of a lane; few lanes are a processor's, which gains nothing from them.
  return { UNROLL: lanes < 64 ? 1 : 4, QUADS: 4, ...foldCounts(lanes) };
}
