import { type Dispatch, dispatch, type Operand } from "../../../src/gpu/kernel.ts";
import { kernelOf } from "../../shader.ts";
import { rowLanes, SCALE_THREADS } from "./row_scales.ts";

const HALF_ROWS = kernelOf("matmul/tensor/half_rows")({}, {
  name: "half_rows",
  bindings: ["x", "scales", "out"],
  constants: ["COLS", "LANES"],
});

/** Records the scales [rows] of x, f32 [rows, cols], and x times them as f16 [rows, cols]; cols is a multiple of 8. */
export function halfRows(
  { x, scales, out }: Readonly<Record<"x" | "scales" | "out", Operand>>,
  { rows, cols, label }: { readonly rows: number; readonly cols: number; readonly label: string },
): Dispatch {
  const lanes = rowLanes(rows);
  return dispatch(HALF_ROWS, {
    buffers: { x: { ...x, size: 4 * rows * cols }, scales, out },
    constants: { COLS: cols, LANES: lanes },
    workgroups: [Math.ceil(rows / (SCALE_THREADS / lanes))],
    label,
    work: { bytes: 6 * rows * cols, flops: 0 },
  });
}
