import { type Dispatch, dispatch, kernel, type Operand } from "../src/gpu/kernel.ts";
import body from "./rope_store.wgsl" with { type: "text" };
import rowsCode from "./rows.wgsl" with { type: "text" };

const ROPE_STORE = kernel("rope_store", [rowsCode, body].join("\n"), {
  bindings: ["qkv", "rope", "rows", "pages", "q", "keys", "values"],
  constants: ["HEAD_DIM", "Q_HEADS", "KV_HEADS", "TABLE_PAGES"],
});

/** Head counts and sizes of one attention layer. */
export interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Pages per slot in the block table. */
  readonly tablePages: number;
}

/** Records: rotate q, rotate and store k, store v of `rows` qkv rows. */
export function ropeStore(
  buffers: {
    readonly qkv: Operand;
    readonly rope: Operand;
    readonly rows: Operand;
    readonly pages: Operand;
    readonly q: Operand;
    readonly keys: Operand;
    readonly values: Operand;
  },
  shape: Heads & { readonly count: number; readonly label: string },
): Dispatch {
  const { heads, kvHeads, headDim, count } = shape;
  return dispatch(ROPE_STORE, {
    buffers,
    constants: {
      HEAD_DIM: shape.headDim,
      Q_HEADS: shape.heads,
      KV_HEADS: shape.kvHeads,
      TABLE_PAGES: shape.tablePages,
    },
    workgroups: [shape.heads + 2 * shape.kvHeads, shape.count],
    label: shape.label,
    work: {
      bytes: 2 * 4 * count * (heads + 2 * kvHeads) * headDim + 4 * count * headDim,
      flops: 3 * count * (heads + kvHeads) * headDim,
    },
  });
}
