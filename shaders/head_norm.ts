import { type Dispatch, dispatch, kernel, type Operand } from "../src/gpu/kernel.ts";
import code from "./head_norm.wgsl" with { type: "text" };

const HEAD_NORM = kernel("head_norm", code, {
  bindings: ["qkv", "q_weight", "k_weight"],
  constants: ["HEAD_DIM", "Q_HEADS", "ROW_COLS", "EPS"],
});

/** Records the per-head RMSNorm of q and k, in place; qkv is [rows, (heads + 2 kvHeads) headDim]. */
export function headNorm(
  buffers: { readonly qkv: Operand; readonly qWeight: Operand; readonly kWeight: Operand },
  shape: {
    readonly rows: number;
    readonly heads: number;
    readonly kvHeads: number;
    readonly headDim: number;
    readonly eps: number;
    readonly label: string;
  },
): Dispatch {
  const { rows, heads, kvHeads, headDim } = shape;
  return dispatch(HEAD_NORM, {
    buffers: { qkv: buffers.qkv, q_weight: buffers.qWeight, k_weight: buffers.kWeight },
    constants: {
      HEAD_DIM: headDim,
      Q_HEADS: heads,
      ROW_COLS: (heads + 2 * kvHeads) * headDim,
      EPS: shape.eps,
    },
    workgroups: [heads + kvHeads, rows],
    label: shape.label,
    work: {
      bytes: 2 * 4 * rows * (heads + kvHeads) * headDim,
      flops: 4 * rows * (heads + kvHeads) * headDim,
    },
  });
}
