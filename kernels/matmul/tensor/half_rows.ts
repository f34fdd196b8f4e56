import { type Dispatch, dispatch, type Operand } from "../../../src/gpu/kernel.ts";
import { kernelOf } from "../../shader.ts";

const HALF_ROWS = kernelOf("matmul/tensor/half_rows")({}, {
  name: "half_rows",
  bindings: ["x", "scales", "out"],
  constants: ["COLS"],
});

/** Records the scales [rows] of x, f32 [rows, cols], and x times them as f16 [rows, cols]; cols is a multiple of 8. */
export function halfRows(
  { x, scales, out }: Readonly<Record<"x" | "scales" | "out", Operand>>,
  { rows, cols, label }: { readonly rows: number; readonly cols: number; readonly label: string },
): Dispatch {
  return dispatch(HALF_ROWS, {
    buffers: { x, scales, out },
    constants: { COLS: cols },
    workgroups: [rows],
    label,
    work: { bytes: 6 * rows * cols, flops: 0 },
  });
}
