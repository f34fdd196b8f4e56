import { expand } from "../src/gpu/expand.ts";
import { type Dispatch, dispatch, type Kernel, kernel, type Operand } from "../src/gpu/kernel.ts";
import tiled from "./attention.wgsl" with { type: "text" };
import lanes from "./attention_lanes.wgsl" with { type: "text" };
import type { Tuning } from "../src/gpu/matrix.ts";
import type { Heads } from "./rope_store.ts";
import rowsCode from "./rows.wgsl" with { type: "text" };
import visible from "./visible.wgsl" with { type: "text" };

type AttentionKernel = Kernel<
  "q" | "keys" | "values" | "rows" | "pages" | "out",
  "HEAD_DIM" | "KV_HEADS" | "TABLE_PAGES" | "SCALE"
>;

const TILE = 64;

const kernels = new Map<string, AttentionKernel>();

/** attention_lanes keeps q and the sums of a group in registers: this many floats at most. */
const MOST_IN_LANES = 128;

function attentionKernel(group: number, headDim: number, software: boolean): AttentionKernel {
  const inLanes = software && group * headDim <= MOST_IN_LANES;
  const body = inLanes ? lanes : tiled;
  const counts = inLanes
    ? { GROUP: group, QUADS: headDim / 4 }
    : { GROUP: group, OUTS: Math.ceil(group * headDim / TILE) };
  const name = `attention${inLanes ? "_lanes" : ""}_${Object.values(counts).join("_")}`;
  return kernels.getOrInsertComputed(
    name,
    () =>
      kernel(name, [rowsCode, visible, expand(body, counts)].join("\n"), {
        bindings: ["q", "keys", "values", "rows", "pages", "out"],
        constants: ["HEAD_DIM", "KV_HEADS", "TABLE_PAGES", "SCALE"],
      }),
  );
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
  shape: Heads & { readonly count: number; readonly tuning: Tuning; readonly label: string },
): Dispatch {
  const { heads, kvHeads, headDim, tuning } = shape;
  return dispatch(attentionKernel(heads / kvHeads, headDim, tuning.software), {
    buffers,
    constants: {
      HEAD_DIM: shape.headDim,
      KV_HEADS: shape.kvHeads,
      TABLE_PAGES: shape.tablePages,
      SCALE: 1 / Math.sqrt(shape.headDim),
    },
    workgroups: [shape.kvHeads, shape.count],
    label: shape.label,
    work: {
      bytes: 2 * 4 * shape.count * heads * headDim, // q in, out written
      flops: 0,
      // A cell's key and value, f32; a multiplication and an addition with each.
      context: {
        bytesPerCell: 2 * 4 * kvHeads * headDim,
        flopsPerCell: 4 * shape.count * heads * headDim,
      },
    },
  });
}
