import type { Operand } from "../../../src/gpu/kernel.ts";
import code from "./finish_qkv.wgsl" with { type: "text" };
import type { Heads, KvPlace } from "../../fragments/heads.ts";
import { KV_STORE } from "../../fragments/kv.ts";
import type { Epilogue } from "../matmul.ts";
import placeHead from "../../fragments/place_head.wgsl" with { type: "text" };
import withBias from "./qkv_bias.wgsl" with { type: "text" };
import plain from "./qkv_plain.wgsl" with { type: "text" };
import rowsCode from "../../fragments/rows.wgsl" with { type: "text" };

/**
 * The epilogue of a qkv matmul that writes rotated q to `out`, [rows, heads headDim], and keys and
 * values to the pages. The matrix is the loader's `heads`; `bias` is of q, k and v,
 * [(heads + 2 kvHeads) headDim].
 */
export function finishQkv(
  { rope, rows, pages, keys, values, bias }: KvPlace & { readonly bias?: Operand | undefined },
  { heads, kvHeads, headDim, tablePages, kvDtype }: Heads,
): Epilogue {
  const place = { rope, rows, pages, keys, values };
  return {
    name: `qkv_${bias ? "bias_" : ""}${kvDtype}`,
    code: [rowsCode, placeHead, KV_STORE[kvDtype], bias ? withBias : plain, code].join("\n"),
    buffers: bias ? { ...place, bias } : place,
    constants: {
      HEAD_DIM: headDim,
      Q_HEADS: heads,
      KV_HEADS: kvHeads,
      TABLE_PAGES: tablePages,
    },
    outShare: heads / (heads + 2 * kvHeads),
    moved: 1,
  };
}
