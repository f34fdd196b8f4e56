import { attention, type PartialSums } from "../../shaders/attention.ts";
import { finishQkv } from "../../shaders/finish_qkv.ts";
import type { Heads } from "../../shaders/heads.ts";
import { matmul } from "../../shaders/matmul.ts";
import { splitsOf } from "../../shaders/matmul_shape.ts";
import { normRopeStore } from "../../shaders/norm_rope_store.ts";
import { type NormInput, type NormKept, rmsNorm } from "../../shaders/rms_norm.ts";
import type { Dispatch, Operand } from "../gpu/kernel.ts";
import type { KvDtype } from "../gpu/kv.ts";
import type { Matrix, Tuning } from "../gpu/matrix.ts";
import type { TensorInfo } from "./checkpoint.ts";
import type { ModelConfig } from "./config.ts";
import type { AttentionSpec, LayerSpec } from "./layer_spec.ts";
import type { Loader } from "./weights.ts";

/** Weights of one decoder layer. */
export interface DecoderLayer {
  readonly spec: LayerSpec;
  /**
   * [q; k; v], [(heads + 2 kvHeads) headDim, width of the layer's input]; the rows are in order
   * with `qkNorm`, else the loader's `heads`.
   */
  readonly qkv: Matrix;
  /** Per-head norms of q and k, [2, headDim] (Qwen3). */
  readonly qkNorm: Operand | undefined;
  /** [hidden, heads headDim] */
  readonly o: Matrix;
  /** [hidden] */
  readonly postNorm: Operand;
  /** [gate; up], [2 intermediate, hidden] */
  readonly gateUp: Matrix;
  /** [hidden, intermediate] */
  readonly down: Matrix;
}

/** Keys and values of one layer, [pages, kvHeads, PAGE, headDim] of the context's `kvDtype` each. */
export interface LayerKv {
  readonly keys: Operand;
  readonly values: Operand;
}

/** Scratch of one forward; every buffer holds the widest plan's rows. */
export interface Scratch {
  /** Residual stream, [rows, hidden]. */
  readonly x: Operand;
  /** [rows, hidden] */
  readonly normed: Operand;
  /** With `qkNorm`: before norms and rope, [rows, (heads + 2 kvHeads) headDim]. */
  readonly qkv: Operand;
  /** Rotated, [rows, heads headDim]. */
  readonly q: Operand;
  /** Of attention, shared by all layers. */
  readonly partial: PartialSums;
  /** Attention output, [rows, heads headDim]. */
  readonly mixed: Operand;
  /** [rows, intermediate] */
  readonly act: Operand;
  /** What a split matmul leaves to be added to x, [splits, rows, hidden]. */
  readonly sums: Operand;
}

/** What every layer of a model shares. */
export interface DecoderContext {
  readonly config: ModelConfig;
  readonly tuning: Tuning;
  readonly scratch: Scratch;
  /** Of each of the config's ropes: cos and sin, [positions, headDim / 2, 2]. */
  readonly ropes: readonly Operand[];
  /** Block table, [slots, tablePages]. */
  readonly pages: Operand;
  readonly tablePages: number;
  readonly kvDtype: KvDtype;
}

/** Rows of a forward: the buffer of `Row`s and how many of them. */
export interface RowsOf {
  readonly rows: Operand;
  readonly count: number;
  /** Rows of one slot that follow each other; divides `count`. */
  readonly perSlot: number;
}

/** Heads of a layer as its kernels want them. */
export function headsOf(
  { numHeads: heads, numKvHeads: kvHeads, headDim }: AttentionSpec,
  { tablePages, kvDtype }: Pick<DecoderContext, "tablePages" | "kvDtype">,
): Heads {
  return { heads, kvHeads, headDim, tablePages, kvDtype };
}

/** Loads one layer; `tensor` finds a role such as "layers.3.q". */
export function loadLayer(
  load: Loader,
  label: string,
  tensor: (role: string) => TensorInfo,
  spec: LayerSpec,
): DecoderLayer {
  const of = (role: string) => tensor(`${label}.${role}`);
  const qkv = [of("q"), of("k"), of("v")];
  const { headDim, qkNorm } = spec.attention;
  const normed = qkNorm === "head";
  return {
    spec,
    qkv: normed ? load.matrix(`${label}.qkv`, qkv) : load.heads(`${label}.qkv`, qkv, headDim),
    qkNorm: normed ? load.vector(`${label}.qkNorm`, of("qNorm"), of("kNorm")) : undefined,
    o: load.matrix(`${label}.o`, [of("o")]),
    postNorm: load.vector(`${label}.postNorm`, of("postNorm")),
    gateUp: load.pair(`${label}.gateUp`, of("gate"), of("up")),
    down: load.matrix(`${label}.down`, [of("down")]),
  };
}

/** sums = o(attention(q, k, v of `input`)): the attention half of a layer. */
export function attentionBlock(
  context: DecoderContext,
  layer: DecoderLayer & { readonly kv: LayerKv; readonly label: string },
  input: Operand,
  of: RowsOf,
): Dispatch[] {
  const { tuning, scratch, pages } = context;
  const { kv: { keys, values }, label, spec: { attention: spec } } = layer;
  const { q, partial, mixed } = scratch;
  const { rows, count, perSlot } = of;
  return [
    ...projectHeads(context, layer, input, of),
    ...attention(
      { q, keys, values, rows, pages, partial, out: mixed },
      {
        ...headsOf(spec, context),
        ...{ count, perSlot, scale: spec.scale, tuning, label: `${label}.attention` },
      },
    ),
    ...intoSums(context, { matrix: layer.o, x: mixed }, count, `${label}.o`),
  ];
}

/** q, k, v of `input`: q and k normed where the model does, and rotated; k and v stored. */
function projectHeads(
  context: DecoderContext,
  layer: DecoderLayer & { readonly kv: LayerKv; readonly label: string },
  input: Operand,
  { rows, count }: RowsOf,
): Dispatch[] {
  const { config, tuning, scratch: { q, qkv }, ropes, pages } = context;
  const { kv, label, qkv: matrix, qkNorm: weight, spec: { attention: spec } } = layer;
  const place = { rope: ropes[spec.rope] as Operand, rows, pages, ...kv };
  const shape = { ...headsOf(spec, context), count };
  const launch = { rows: count, tuning, label: `${label}.qkv` };
  if (!weight) {
    return matmul({ matrix, x: input, out: q }, { ...launch, finish: finishQkv(place, shape) });
  }
  return [
    ...matmul({ matrix, x: input, out: qkv }, { ...launch, finish: "store" }),
    normRopeStore(
      { ...place, qkv, weight, q },
      { ...shape, eps: config.rmsNormEps, tuning, label: `${label}.normRope` },
    ),
  ];
}

/**
 * x += sums, y = down(silu(gate(n)) * up(n)) with n = norm(x): the MLP half of a layer after its
 * attention half. Leaves y in `sums`, or adds it to x, as `end` says.
 */
export function mlpBlock(
  context: DecoderContext,
  layer: DecoderLayer & { readonly label: string },
  rows: number,
  end: "sums" | "x",
): Dispatch[] {
  const { tuning, scratch: { x, normed, act } } = context;
  const { label } = layer;
  const from = withSums(context, layer.o);
  const down = { matrix: layer.down, x: act };
  return [
    ...norm(context, { from, weight: layer.postNorm, out: normed }, rows, `${label}.postNorm`),
    ...matmul(
      { matrix: layer.gateUp, x: normed, out: act },
      { rows, finish: "swiglu", tuning, label: `${label}.gateUp` },
    ),
    ...end === "sums"
      ? intoSums(context, down, rows, `${label}.down`)
      : matmul({ ...down, out: x }, { rows, finish: "add", tuning, label: `${label}.down` }),
  ];
}

/** sums = x W^T in ranges of k that the next norm adds to the residual stream, see `withSums`. */
function intoSums(
  { tuning, scratch: { sums: out } }: DecoderContext,
  { matrix, x }: { readonly matrix: Matrix; readonly x: Operand },
  rows: number,
  label: string,
): Dispatch[] {
  const splits = splitsOf(matrix, tuning);
  return matmul({ matrix, x, out }, { rows, finish: "store", splits, tuning, label });
}

/** The residual stream with what `matrix` left in `sums` added to it. */
export function withSums(
  { tuning, scratch: { x, sums } }: DecoderContext,
  matrix: Matrix,
): NormInput {
  return { x, sums, splits: splitsOf(matrix, tuning) };
}

/** out = norm(x) of the residual stream, or of `from` where given. */
export function norm(
  { config, tuning, scratch }: DecoderContext,
  { from = { x: scratch.x }, weight, out, keep, ...window }: {
    readonly from?: NormInput;
    readonly weight: Operand;
    readonly out: Operand;
    readonly outCols?: number;
    readonly outFirst?: number;
    readonly keep?: NormKept | undefined;
  },
  rows: number,
  label: string,
): Dispatch[] {
  return rmsNorm({ from, weight, out, keep }, {
    rows,
    cols: config.hiddenSize,
    eps: config.rmsNormEps,
    lanes: tuning.rowLanes,
    ...window,
    label,
  });
}
