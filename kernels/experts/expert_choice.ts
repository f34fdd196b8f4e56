import type { Operand } from "../../src/gpu/kernel.ts";
import { CHOICE_CONSTANTS, choiceConstants, type Routing } from "./route.ts";

/** The logits by which workgroups choose their experts, and what one a row stores besides `experts`. */
export interface ExpertChoice {
  readonly routing: Routing;
  /** [rows, stride] */
  readonly logits: Operand;
  readonly stride: number;
  /** Of the chosen ones, f32 [rows, topK]. */
  readonly weights: Operand;
}

/** What texts that choose bind, and the constants of jobs.wgsl. */
export const CHOOSING: Readonly<Record<"bindings" | "constants", readonly string[]>> = {
  bindings: ["logits", "experts", "shares"],
  constants: ["JOBS", "STRIDE", ...CHOICE_CONSTANTS],
};

/** Values of the constants, of workgroups of `lanes` invocations; `shared` experts follow the chosen ones. */
export function choosingConstants(
  { routing, stride }: ExpertChoice,
  { jobs, lanes, shared = 0 }: {
    readonly jobs: number;
    readonly lanes: number;
    readonly shared?: number | undefined;
  },
): Record<typeof CHOICE_CONSTANTS[number] | "JOBS" | "STRIDE", number> {
  return { ...choiceConstants(routing, { lanes, shared }), JOBS: jobs, STRIDE: stride };
}
