import { expand } from "../src/gpu/expand.ts";
import sumBody from "./workgroup_sum.wgsl" with { type: "text" };

/** Partial results that each lane folds alone after the last stage. */
const MOST_REST = 16;

/**
 * WGSL `fn total(x: Sum, lane: u32) -> Sum` for `lanes` invocations; the kernel declares
 * `override LANES` and `alias Sum`.
 *
 * @param lanes a power of two.
 */
export function workgroupSum(lanes: number): string {
  return expand(sumBody, stages(lanes));
}

/** How a workgroup folds `lanes` partial results: stages that leave an eighth each, and a rest. */
function stages(lanes: number): { STAGES: number; REST: number; EIGHT: number } {
  let [STAGES, REST] = [0, lanes];
  for (; REST > MOST_REST; REST /= 8) STAGES++;
  return { STAGES, REST, EIGHT: 8 };
}
