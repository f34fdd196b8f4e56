import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Heads, KvPlace } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";

const THREADS = 128;

interface PlaceHeadsParameters {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
}

function placeHeadsKernel(dtype: KvDtype): Kernel {
  const name = `place_heads_${dtype}`;
  return kernelOf<PlaceHeadsParameters>("attention/place_heads")({ kv: dtype }, {
    name,
    bindings: ["sums", "out", "rope", "rows", "pages", "keys", "values"],
    constants: ["SPLIT_K", "HEAD_DIM", "Q_HEADS", "KV_HEADS", "TABLE_PAGES"],
  });
}

/** Records what `qkvEpilogue` does, for `count` rows of the partial sums of a split-K matmul. */
export function placeHeads(
  { sums, q, ...place }: KvPlace & {
    /** [splitK, count, (heads + 2 kvHeads) headDim], of a matrix of row order rope_halves. */
    readonly sums: Operand;
    /** Rotated, [count, heads headDim]. */
    readonly q: Operand;
  },
  { heads, kvHeads, headDim, tablePages, kvDtype, count, splitK, label }: Heads & {
    readonly count: number;
    readonly splitK: number;
    readonly label: string;
  },
): Dispatch {
  const width = (heads + 2 * kvHeads) * headDim;
  return dispatch(placeHeadsKernel(kvDtype), {
    buffers: { sums: { ...sums, size: 4 * splitK * count * width }, out: q, ...place },
    constants: {
      SPLIT_K: splitK,
      HEAD_DIM: headDim,
      Q_HEADS: heads,
      KV_HEADS: kvHeads,
      TABLE_PAGES: tablePages,
    },
    workgroups: [Math.ceil(width / 2 / THREADS), count],
    label,
    work: { bytes: 4 * (splitK + 1) * count * width, flops: (splitK + 3) * count * width },
  });
}
