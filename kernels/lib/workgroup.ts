/** Partial results that each lane folds alone after the last stage. */
const MAX_REST = 16;

/** What workgroup_sum.wgsl and workgroup_partial.wgsl take: how a workgroup folds partial results. */
export interface FoldParameters {
  /** Stages, each of which folds eight results into one. */
  readonly STAGES: number;
  /** Results after the last stage, which each lane folds. */
  readonly REST: number;
}

/** @param lanes partial results, a power of two. */
export function foldCounts(lanes: number): FoldParameters {
  let [STAGES, REST] = [0, lanes];
  for (; REST > MAX_REST; REST /= 8) STAGES++;
  return { STAGES, REST };
}
