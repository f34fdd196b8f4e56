import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/matrix.ts";
import type { Heads, KvPlace } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";

/**
 * Heads of a workgroup where rows are many: a multiprocessor has 32 workgroups at a time, which of one subgroup each
 * are half of what it could have.
 */
const SIDE_BY_SIDE = 8;
const MANY_ROWS = 64;

interface NormRopeStoreParameters {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
  /** Invocations of a head, rope pairs of each, and heads of a workgroup. */
  readonly LANES: number;
  readonly PAIRS: number;
  readonly HEADS: number;
}

function normRopeStoreKernel(
  name: string,
  { dtype, lanes, pairs, side }: {
    readonly dtype: KvDtype;
    /** Of a head. */
    readonly lanes: number;
    /** Heads of a workgroup. */
    readonly side: number;
    /** Of a head, a lane. */
    readonly pairs: number;
  },
): Kernel<
  "qkv" | "weight" | "out" | "rope" | "rows" | "pages" | "keys" | "values",
  "EPS" | "Q_SPAN" | "K_SPAN" | "HEAD_DIM" | "Q_HEADS" | "KV_HEADS" | "TABLE_PAGES"
> {
  const parameters = { kv: dtype, LANES: lanes, PAIRS: pairs, HEADS: side };
  return kernelOf<NormRopeStoreParameters>("attention/norm_rope_store")(parameters, {
    name,
    bindings: ["qkv", "weight", "out", "rope", "rows", "pages", "keys", "values"],
    constants: ["EPS", "Q_SPAN", "K_SPAN", "HEAD_DIM", "Q_HEADS", "KV_HEADS", "TABLE_PAGES"],
  });
}

/**
 * Records: norm and rotate q into `q`, norm, rotate and store k, store v of `count` qkv rows,
 * [count, (heads + 2 kvHeads) headDim]. `weight` is the norms of q and k, [2, headDim], or with
 * `whole`, where all heads are normed together, [heads + kvHeads, headDim].
 */
export function normRopeStore(
  buffers: KvPlace & { readonly qkv: Operand; readonly weight: Operand; readonly q: Operand },
  shape: Heads & {
    readonly count: number;
    readonly eps: number;
    readonly whole?: boolean;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch {
  const { q: out, ...others } = buffers;
  const { heads, kvHeads, headDim, count, kvDtype: dtype } = shape;
  const lanes = shape.tuning.software ? 8 : 32;
  const pairs = Math.ceil(headDim / 2 / lanes);
  const side = !shape.tuning.software && count >= MANY_ROWS ? SIDE_BY_SIDE : 1;
  const name = `norm_rope_store_${dtype}_${lanes}x${pairs}${side > 1 ? `_${side}` : ""}`;
  return dispatch(normRopeStoreKernel(name, { dtype, lanes, pairs, side }), {
    buffers: { out, ...others },
    constants: {
      EPS: shape.eps,
      Q_SPAN: shape.whole ? heads : 1,
      K_SPAN: shape.whole ? kvHeads : 1,
      HEAD_DIM: headDim,
      Q_HEADS: heads,
      KV_HEADS: kvHeads,
      TABLE_PAGES: shape.tablePages,
    },
    workgroups: [Math.ceil((heads + 2 * kvHeads) / side), count],
    label: shape.label,
    work: {
      bytes: 2 * 4 * count * (heads + 2 * kvHeads) * headDim + 4 * count * headDim,
      flops: 7 * count * (heads + kvHeads) * headDim,
    },
  });
}
