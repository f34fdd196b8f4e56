import { type Dispatch, dispatch, kernel, type Operand } from "../src/gpu/kernel.ts";
import code from "./rms_norm.wgsl" with { type: "text" };

const RMS_NORM = kernel("rms_norm", code, {
  bindings: ["x", "weight", "out"],
  constants: ["COLS", "EPS", "OUT_COLS", "OUT_FIRST", "LANES"],
});

/** Records `out[r, outFirst..] = x[r] / rms(x[r]) * weight`; x is [rows, cols]. */
export function rmsNorm(
  buffers: { readonly x: Operand; readonly weight: Operand; readonly out: Operand },
  shape: {
    readonly rows: number;
    readonly cols: number;
    readonly eps: number;
    readonly lanes: number;
    /** Row stride of out; default cols. */
    readonly outCols?: number;
    readonly outFirst?: number;
    readonly label: string;
  },
): Dispatch {
  return dispatch(RMS_NORM, {
    buffers,
    constants: {
      COLS: shape.cols,
      EPS: shape.eps,
      OUT_COLS: shape.outCols ?? shape.cols,
      OUT_FIRST: shape.outFirst ?? 0,
      LANES: shape.lanes,
    },
    workgroups: [shape.rows],
    label: shape.label,
    work: { bytes: 4 * (2 * shape.rows + 1) * shape.cols, flops: 4 * shape.rows * shape.cols },
  });
}
