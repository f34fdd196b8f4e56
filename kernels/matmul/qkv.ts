import type { Operand } from "../../src/gpu/kernel.ts";
import type { Heads, KvPlace } from "../lib/heads.ts";
import type { Epilogue } from "../lib/epilogue.ts";

/** Storage buffers that `qkvEpilogue` binds without a bias. */
export const QKV_BUFFERS = 5;

/**
 * The epilogue of a qkv matmul that writes rotated q to `out`, [rows, heads headDim], and keys and
 * values to the pages. The row order of the matrix is rope_halves; `bias` is of q, k and v,
 * [(heads + 2 kvHeads) headDim].
 */
export function qkvEpilogue(
  { rope, rows, pages, keys, values, bias }: KvPlace & { readonly bias?: Operand | undefined },
  { heads, kvHeads, headDim, tablePages, kvDtype }: Heads,
): Epilogue {
  const place = { rope, rows, pages, keys, values };
  return {
    name: `qkv_${bias ? "bias_" : ""}${kvDtype}`,
    parameters: { epilogue: "qkv", kv: kvDtype, BIASED: bias !== undefined },
    prepares: true,
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
