/** Converts bf16 weights to the f16 that matrix units take: once, when they are loaded. */
import { type Dispatch, dispatch, type Operand } from "../../../src/gpu/kernel.ts";
import { kernelOf } from "../../shader.ts";

const WEIGHT_SCALES = kernelOf("matmul/tensor/weight_scales")({}, {
  name: "weight_scales",
  bindings: ["weights", "scales", "faults"],
  constants: ["COLS", "ROWS_ACROSS"],
});

/** Workgroups along x where each has a row: a vocabulary has more rows than one dimension may have workgroups. */
export const ROWS_ACROSS: number = 1 << 15;

/**
 * Records the scales [rows] of a bf16 matrix [rows, cols], cols even, and how many numbers of each row, times its
 * scale, are not exact in f16: a matrix with any such number stays with the other kernels.
 */
export function weightScales(
  buffers: { readonly weights: Operand; readonly scales: Operand; readonly faults: Operand },
  { rows, cols }: { readonly rows: number; readonly cols: number },
): Dispatch {
  return dispatch(WEIGHT_SCALES, {
    buffers,
    constants: { COLS: cols, ROWS_ACROSS },
    workgroups: [Math.min(rows, ROWS_ACROSS), Math.ceil(rows / ROWS_ACROSS)],
    label: "weight_scales",
  });
}

const HALVE_WEIGHTS = kernelOf("matmul/tensor/halve_weights")({}, {
  name: "halve_weights",
  bindings: ["weights", "scales"],
  constants: ["COLS", "ROWS_ACROSS"],
});

/** Records the conversion of a bf16 matrix [rows, cols], cols even, to f16 in place, each row times its scale. */
export function halveWeights(
  buffers: { readonly weights: Operand; readonly scales: Operand },
  { rows, cols }: { readonly rows: number; readonly cols: number },
): Dispatch {
  return dispatch(HALVE_WEIGHTS, {
    buffers,
    constants: { COLS: cols, ROWS_ACROSS },
    workgroups: [Math.min(rows, ROWS_ACROSS), Math.ceil(rows / ROWS_ACROSS)],
    label: "halve_weights",
  });
}
