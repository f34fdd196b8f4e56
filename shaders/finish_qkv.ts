import type { Operand } from "../src/gpu/kernel.ts";
import code from "./finish_qkv.wgsl" with { type: "text" };
import type { Heads, KvPlace } from "./heads.ts";
import { KV_STORE } from "./kv.ts";
import type { Epilogue } from "./matmul.ts";
import placeHead from "./place_head.wgsl" with { type: "text" };
import rowsCode from "./rows.wgsl" with { type: "text" };

/**
 * The epilogue of a qkv matmul that writes rotated q to `out`, [rows, heads
 * headDim], and keys and values to the pages. The matrix is the loader's `heads`.
 */
export function finishQkv(
  { rope, rows, pages, keys, values }: KvPlace,
  { heads, kvHeads, headDim, tablePages, kvDtype }: Heads,
): Epilogue {
  const buffers: Readonly<Record<string, Operand>> = { rope, rows, pages, keys, values };
  return {
    name: `qkv_${kvDtype}`,
    code: [rowsCode, placeHead, KV_STORE[kvDtype], code].join("\n"),
    buffers,
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
