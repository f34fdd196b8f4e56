import { expand } from "../src/gpu/expand.ts";
import { type Dispatch, dispatch, type Kernel, kernel, type Operand } from "../src/gpu/kernel.ts";
import body from "./attention.wgsl" with { type: "text" };
import type { Heads } from "./rope_store.ts";
import rowsCode from "./rows.wgsl" with { type: "text" };

type AttentionKernel = Kernel<
  "q" | "keys" | "values" | "rows" | "pages" | "out",
  "HEAD_DIM" | "KV_HEADS" | "TABLE_PAGES" | "SCALE"
>;

const TILE = 64;

const kernels = new Map<string, AttentionKernel>();

function attentionKernel(group: number, headDim: number): AttentionKernel {
  const outs = Math.ceil(group * headDim / TILE);
  const name = `attention_${group}_${outs}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = [rowsCode, expand(body, { GROUP: group, OUTS: outs })].join("\n");
    return kernel(name, code, {
      bindings: ["q", "keys", "values", "rows", "pages", "out"],
      constants: ["HEAD_DIM", "KV_HEADS", "TABLE_PAGES", "SCALE"],
    });
  });
}

/** Records attention of `count` rows over the pages of their slots; q and out are [count, heads, headDim]. */
export function attention(
  buffers: {
    readonly q: Operand;
    readonly keys: Operand;
    readonly values: Operand;
    readonly rows: Operand;
    readonly pages: Operand;
    readonly out: Operand;
  },
  shape: Heads & { readonly count: number; readonly label: string },
): Dispatch {
  return dispatch(attentionKernel(shape.heads / shape.kvHeads, shape.headDim), {
    buffers,
    constants: {
      HEAD_DIM: shape.headDim,
      KV_HEADS: shape.kvHeads,
      TABLE_PAGES: shape.tablePages,
      SCALE: 1 / Math.sqrt(shape.headDim),
    },
    workgroups: [shape.kvHeads, shape.count],
    label: shape.label,
  });
}
