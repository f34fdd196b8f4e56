import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { Heads, KvPlace } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";

/**
 * Heads of a workgroup where rows are many. A multiprocessor runs at most 32 workgroups at a time; with one subgroup
 * each they would be half of the subgroups that it could run.
 */
const SIDE_BY_SIDE = 8;
const MANY_ROWS = 64;

/**
 * How values are made. "plain": v as it is; "normed": v normed without weights; "keys": k as it is, normed without
 * weights; "none": there are neither keys nor values.
 */
export type ValuesOf = "plain" | "normed" | "keys" | "none";

interface NormRopeStoreParameters {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
  readonly values: ValuesOf;
  /** Whether the norms' weights are multiplied after rope. */
  readonly AFTER_ROPE: boolean;
  /** Invocations of a head, rope pairs of each, and heads of a workgroup. */
  readonly LANES: number;
  readonly PAIRS: number;
  readonly HEADS: number;
}

function normRopeStoreKernel(
  name: string,
  { dtype, values, afterRope, lanes, pairs, side }: {
    readonly dtype: KvDtype;
    readonly values: ValuesOf;
    readonly afterRope: boolean;
    /** Of a head. */
    readonly lanes: number;
    /** Heads of a workgroup. */
    readonly side: number;
    /** Of a head, a lane. */
    readonly pairs: number;
  },
): Kernel<
  "qkv" | "weight" | "out" | "rope" | "rows" | "pages" | "keys" | "values",
  "EPS" | "Q_SPAN" | "K_SPAN" | "ROW" | "HEAD_DIM" | "Q_HEADS" | "KV_HEADS" | "TABLE_PAGES"
> {
  const parameters = {
    kv: dtype,
    values,
    AFTER_ROPE: afterRope,
    LANES: lanes,
    PAIRS: pairs,
    HEADS: side,
  };
  return kernelOf<NormRopeStoreParameters>("attention/norm_rope_store")(parameters, {
    name,
    bindings: ["qkv", "weight", "out", "rope", "rows", "pages", "keys", "values"],
    constants: [
      "EPS",
      "Q_SPAN",
      "K_SPAN",
      "ROW",
      "HEAD_DIM",
      "Q_HEADS",
      "KV_HEADS",
      "TABLE_PAGES",
    ],
  });
}

/**
 * Records: norm and rotate q into `q`, norm, rotate and store k, store v of `count` qkv rows,
 * [count, rowCols]. `weight` is the norms of q and k, [2, headDim], or with
 * `whole`, where all heads are normed together, [heads + kvHeads, headDim]. With `values`, which goes with heads that
 * are normed each, qkv and weight have only what is there: see `ValuesOf`.
 */
export function normRopeStore(
  buffers: KvPlace & { readonly qkv: Operand; readonly weight: Operand; readonly q: Operand },
  shape: Heads & {
    readonly count: number;
    readonly eps: number;
    /** Columns of qkv. Default: those of q, k and v, which are the first. */
    readonly rowCols?: number | undefined;
    readonly whole?: boolean;
    /** Default "plain". */
    readonly values?: ValuesOf | undefined;
    /** Whether q and k are normed after rope; default: before. Values are then "plain". */
    readonly afterRope?: boolean | undefined;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch {
  const { q: out, ...others } = buffers;
  const { heads, kvHeads, headDim, count, kvDtype: dtype, values = "plain" } = shape;
  const { afterRope = false } = shape;
  const lanes = shape.tuning.software ? 8 : 32;
  const pairs = Math.ceil(headDim / 2 / lanes);
  const side = !shape.tuning.software && count >= MANY_ROWS ? SIDE_BY_SIDE : 1;
  const kinds = [
    ...side > 1 ? [side] : [],
    ...values === "plain" ? [] : [values],
    ...afterRope ? ["after_rope"] : [],
  ];
  const name = [`norm_rope_store_${dtype}_${lanes}x${pairs}`, ...kinds].join("_");
  const made = values === "none" ? heads : heads + 2 * kvHeads;
  const rowCols = shape.rowCols ?? headDim * (values === "keys" ? heads + kvHeads : made);
  return dispatch(normRopeStoreKernel(name, { dtype, values, afterRope, lanes, pairs, side }), {
    buffers: { out, ...others },
    constants: {
      EPS: shape.eps,
      Q_SPAN: shape.whole ? heads : 1,
      K_SPAN: shape.whole ? kvHeads : 1,
      ROW: rowCols,
      HEAD_DIM: headDim,
      Q_HEADS: heads,
      KV_HEADS: kvHeads,
      TABLE_PAGES: shape.tablePages,
    },
    workgroups: [Math.ceil(made / side), count],
    label: shape.label,
    work: {
      bytes: 2 * 4 * count * made * headDim + 4 * count * headDim,
      flops: 7 * count * (made - (values === "none" ? 0 : kvHeads)) * headDim,
    },
  });
}
