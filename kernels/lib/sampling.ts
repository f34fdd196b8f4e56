import { foldCounts } from "./workgroup.ts";

/** Parameters of lib/sampling.wgsl for workgroups of `lanes` invocations, a power of two. */
export function samplingCounts(lanes: number): Readonly<Record<string, number>> {
  // Loads in flight of a lane; few lanes are a processor's, which gains nothing from them.
  return { UNROLL: lanes < 64 ? 1 : 4, QUADS: 4, ...foldCounts(lanes) };
}
