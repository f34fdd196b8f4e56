import { type Dispatch, dispatch, type Operand } from "../../../src/gpu/kernel.ts";
import { kernelOf } from "../../shader.ts";

const ROW_SCALES = kernelOf("matmul/tensor/row_scales")({}, {
  name: "row_scales",
  bindings: ["x", "scales"],
  constants: ["COLS", "LANES"],
});

/**
 * Invocations of a workgroup of kernels that find the scales of rows, and per row if there are at least MANY_ROWS rows,
 * which then fill a large GPU.
 */
export const SCALE_THREADS = 256;
const SCALE_LANES = 32;
const MANY_ROWS = 2048;

/** Invocations that share a row in such a kernel. */
export function rowLanes(rows: number): number {
  return rows >= MANY_ROWS ? SCALE_LANES : SCALE_THREADS;
}

/** Records the scales [rows] of x [rows, cols], cols a multiple of 4. */
export function rowScales(
  { x, scales }: { readonly x: Operand; readonly scales: Operand },
  { rows, cols, label = "row_scales" }: {
    readonly rows: number;
    readonly cols: number;
    readonly label?: string;
  },
): Dispatch {
  const lanes = rowLanes(rows);
  return dispatch(ROW_SCALES, {
    buffers: { x: { ...x, size: 4 * rows * cols }, scales },
    constants: { COLS: cols, LANES: lanes },
    workgroups: [Math.ceil(rows / (SCALE_THREADS / lanes))],
    label,
    work: { bytes: 4 * rows * cols, flops: 0 },
  });
}
