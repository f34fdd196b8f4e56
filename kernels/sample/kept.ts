import { foldCounts } from "../lib/workgroup.ts";

/** Loads in flight of a lane; few lanes are a processor's, which gains nothing from them. */
function unrolled(lanes: number): number {
  return lanes < 64 ? 1 : 4;
}

/** Counts of kept.wgsl. */
export function keptCounts(lanes: number): Readonly<Record<string, number>> {
  return { UNROLL: unrolled(lanes), QUADS: 4, ...foldCounts(lanes) };
}
