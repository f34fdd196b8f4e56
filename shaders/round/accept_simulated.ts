import { type Dispatch, dispatch, kernel } from "../../src/gpu/kernel.ts";
import commitCode from "./accept_commit.wgsl" with { type: "text" };
import ruleCode from "./accept_simulated.wgsl" with { type: "text" };
import noise from "../fragments/noise.wgsl" with { type: "text" };
import type { AcceptBuffers } from "./round.ts";
import rowsCode from "../fragments/rows.wgsl" with { type: "text" };

const ACCEPT = kernel("accept_simulated", [rowsCode, noise, ruleCode, commitCode].join("\n"), {
  bindings: ["lanes", "rows", "chosen", "drafts", "slots", "extend", "last", "results"],
  constants: ["NUM_STEPS", "P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7"],
});

/**
 * Records `accept` with drawn counts, for timing models whose drafts mean nothing. Bench only.
 *
 * @param shape.acceptance probability that draft j is accepted when those before it were; the last
 * one holds for all further drafts.
 */
export function acceptSimulated(
  buffers: AcceptBuffers,
  shape: {
    readonly batch: number;
    readonly numSteps: number;
    readonly acceptance: readonly number[];
  },
): Dispatch {
  const { batch, numSteps, acceptance } = shape;
  const p = (step: number) => acceptance[step] ?? acceptance.at(-1) ?? 0;
  return dispatch(ACCEPT, {
    buffers,
    constants: {
      NUM_STEPS: numSteps,
      P0: p(0),
      P1: p(1),
      P2: p(2),
      P3: p(3),
      P4: p(4),
      P5: p(5),
      P6: p(6),
      P7: p(7),
    },
    workgroups: [batch],
  });
}
