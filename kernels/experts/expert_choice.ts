import type { Operand } from "../../src/gpu/kernel.ts";
import { choiceConstants, type Routing } from "./route.ts";

/** The logits by which workgroups choose their experts, and what one a row stores besides `experts`. */
export interface ExpertChoice {
  readonly routing: Routing;
  /** [rows, stride] */
  readonly logits: Operand;
  readonly stride: number;
  /** Of the chosen ones, f32 [rows, topK]. */
  readonly weights: Operand;
}

/** Constants of jobs.wgsl where it chooses, of workgroups of `lanes` invocations; `shared` experts follow the chosen ones. */
export function choosingConstants(
  { routing, stride }: ExpertChoice,
  { jobs, lanes, shared = 0 }: {
    readonly jobs: number;
    readonly lanes: number;
    readonly shared?: number | undefined;
  },
): Readonly<Record<string, number>> {
  return { ...choiceConstants(routing, { lanes, shared }), JOBS: jobs, STRIDE: stride };
}
