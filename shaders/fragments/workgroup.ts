import { expand } from "../../src/gpu/expand.ts";
import peakBody from "./workgroup_peak.wgsl" with { type: "text" };
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

/**
 * WGSL `fn best_of(x: Peak, lane: u32) -> Peak` for `lanes` invocations; the kernel declares
 * `override LANES` and includes peak.wgsl.
 *
 * @param lanes a power of two.
 */
export function workgroupPeak(lanes: number): string {
  return expand(peakBody, stages(lanes));
}

/** How a workgroup folds `lanes` partial results: stages that leave an eighth each, and a rest. */
function stages(lanes: number): { STAGES: number; REST: number; EIGHT: number } {
  let [STAGES, REST] = [0, lanes];
  for (; REST > MOST_REST; REST /= 8) STAGES++;
  return { STAGES, REST, EIGHT: 8 };
}
