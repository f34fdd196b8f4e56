import { type Dispatch, dispatch, type Operand } from "../../../src/gpu/kernel.ts";
import { kernelOf } from "../../shader.ts";

const ROW_SCALES = kernelOf("matmul/tensor/row_scales")({}, {
  name: "row_scales",
  bindings: ["x", "scales"],
  constants: ["COLS", "LANES"],
});

/**
 * Invocations of `rowScales` in a workgroup, and per row if there are at least MANY_ROWS rows, which then fill a large
 * GPU.
 */
const SCALE_THREADS = 256;
const SCALE_LANES = 32;
const MANY_ROWS = 2048;

/** Records the scales [rows] of x [rows, cols], cols a multiple of 4. */
export function rowScales(
  { x, scales }: { readonly x: Operand; readonly scales: Operand },
  { rows, cols, label = "row_scales" }: {
    readonly rows: number;
    readonly cols: number;
    readonly label?: string;
  },
): Dispatch {
  const lanes = rows >= MANY_ROWS ? SCALE_LANES : SCALE_THREADS;
  return dispatch(ROW_SCALES, {
    buffers: { x: { ...x, size: 4 * rows * cols }, scales },
    constants: { COLS: cols, LANES: lanes },
    workgroups: [Math.ceil(rows / (SCALE_THREADS / lanes))],
    label,
    work: { bytes: 4 * rows * cols, flops: 0 },
  });
}
