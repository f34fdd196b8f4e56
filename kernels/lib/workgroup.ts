/** Partial results that each lane folds alone after the last stage. */
const MOST_REST = 16;

/**
 * Parameters of workgroup_sum.wgsl and workgroup_partial.wgsl: how a workgroup folds `lanes`
 * partial results, in stages that fold eight into one each, and a rest.
 *
 * @param lanes a power of two.
 */
export function foldCounts(lanes: number): { STAGES: number; REST: number } {
  let [STAGES, REST] = [0, lanes];
  for (; REST > MOST_REST; REST /= 8) STAGES++;
  return { STAGES, REST };
}
