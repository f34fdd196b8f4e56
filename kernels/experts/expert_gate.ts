/** expert_gate.wgsl: the clamped SwiGLU of gpt-oss's experts, with their biases. */
import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const GATE = kernelOf("experts/expert_gate")({}, {
  name: "expert_gate",
  bindings: ["x", "bias", "experts", "out"],
  constants: ["COLS", "LIMIT"],
});

/**
 * Records `out = gate sigmoid(1.702 gate) (up + 1)` of x, f32 [rows, 2 cols], rows being jobs and neighbouring columns
 * a gate and an up; their experts are u32 [rows], whose biases [numExperts, 2 cols] are added.
 */
export function gateExperts(
  buffers: Readonly<Record<"x" | "bias" | "experts" | "out", Operand>>,
  { rows, cols, limit, label }: {
    readonly rows: number;
    /** Of out. */
    readonly cols: number;
    readonly limit: number;
    readonly label: string;
  },
): Dispatch {
  return dispatch(GATE, {
    buffers,
    constants: { COLS: cols, LIMIT: limit },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 4 * rows * cols * 3, flops: 12 * rows * cols },
  });
}
