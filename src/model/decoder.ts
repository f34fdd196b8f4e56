import { attention } from "../../shaders/attention.ts";
import { headNorm } from "../../shaders/head_norm.ts";
import { matmul } from "../../shaders/matmul.ts";
import { type NormInput, type NormKept, rmsNorm } from "../../shaders/rms_norm.ts";
import { type Heads, ropeStore } from "../../shaders/rope_store.ts";
import type { Dispatch, Operand } from "../gpu/kernel.ts";
import type { Matrix, Tuning } from "../gpu/matrix.ts";
import type { TensorInfo } from "./checkpoint.ts";
import type { ModelConfig } from "./config.ts";
import type { LayerSpec } from "./layer_spec.ts";
import type { Loader } from "./weights.ts";

/** Weights of one decoder layer. */
export interface DecoderLayer {
  readonly spec: LayerSpec;
  /** [q; k; v], [(heads + 2 kvHeads) headDim, width of the layer's input]. */
  readonly qkv: Matrix;
  /** Per-head norms of q and k, [headDim] each (Qwen3). */
  readonly qkNorm: { readonly q: Operand; readonly k: Operand } | undefined;
  /** [hidden, heads headDim] */
  readonly o: Matrix;
  /** [hidden] */
  readonly postNorm: Operand;
  /** [gate; up], [2 intermediate, hidden] */
  readonly gateUp: Matrix;
  /** [hidden, intermediate] */
  readonly down: Matrix;
}

/** Keys and values of one layer, [pages, kvHeads, PAGE, headDim] f32 each. */
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
  /** [rows, (heads + 2 kvHeads) headDim] */
  readonly qkv: Operand;
  /** [rows, heads headDim] */
  readonly q: Operand;
  /** Attention output, [rows, heads headDim]. */
  readonly mixed: Operand;
  /** [rows, intermediate] */
  readonly act: Operand;
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
}

/** Rows of a forward: the buffer of `Row`s and how many of them. */
export interface RowsOf {
  readonly rows: Operand;
  readonly count: number;
}

/** Loads one layer; `tensor` finds a role such as "layers.3.q". */
export function loadLayer(
  load: Loader,
  label: string,
  tensor: (role: string) => TensorInfo,
  spec: LayerSpec,
): DecoderLayer {
  const of = (role: string) => tensor(`${label}.${role}`);
  return {
    spec,
    qkv: load.matrix(`${label}.qkv`, [of("q"), of("k"), of("v")]),
    qkNorm: spec.attention.qkNorm === "head"
      ? {
        q: load.vector(`${label}.qNorm`, of("qNorm")),
        k: load.vector(`${label}.kNorm`, of("kNorm")),
      }
      : undefined,
    o: load.matrix(`${label}.o`, [of("o")]),
    postNorm: load.vector(`${label}.postNorm`, of("postNorm")),
    gateUp: load.pair(`${label}.gateUp`, of("gate"), of("up")),
    down: load.matrix(`${label}.down`, [of("down")]),
  };
}

/** x += o(attention(q, k, v of `input`)): the attention half of a layer. */
export function attentionBlock(
  context: DecoderContext,
  layer: DecoderLayer & { readonly kv: LayerKv; readonly label: string },
  input: Operand,
  { rows, count }: RowsOf,
): Dispatch[] {
  const { config, tuning, scratch, ropes, pages } = context;
  const { kv: { keys, values }, label, spec: { attention: spec } } = layer;
  const rope = ropes[spec.rope] as Operand;
  const { qkv, q, mixed, x } = scratch;
  const heads: Heads = {
    heads: spec.numHeads,
    kvHeads: spec.numKvHeads,
    headDim: spec.headDim,
    tablePages: context.tablePages,
  };
  const norms = layer.qkNorm
    ? [headNorm({ qkv, qWeight: layer.qkNorm.q, kWeight: layer.qkNorm.k }, {
      ...heads,
      rows: count,
      eps: config.rmsNormEps,
      label: `${label}.qkNorm`,
    })]
    : [];
  return [
    ...matmul(
      { matrix: layer.qkv, x: input, out: qkv },
      { rows: count, finish: "store", tuning, label: `${label}.qkv` },
    ),
    ...norms,
    ropeStore(
      { qkv, rope, rows, pages, q, keys, values },
      { ...heads, count, label: `${label}.rope` },
    ),
    attention(
      { q, keys, values, rows, pages, out: mixed },
      { ...heads, count, tuning, label: `${label}.attention` },
    ),
    ...matmul(
      { matrix: layer.o, x: mixed, out: x },
      { rows: count, finish: "add", tuning, label: `${label}.o` },
    ),
  ];
}

/** x += down(silu(gate(n)) * up(n)), n = norm(x): the MLP half of a layer. */
export function mlpBlock(
  context: DecoderContext,
  layer: DecoderLayer & { readonly label: string },
  rows: number,
): Dispatch[] {
  const { tuning, scratch: { x, normed, act } } = context;
  const { label } = layer;
  return [
    ...norm(context, { weight: layer.postNorm, out: normed }, rows, `${label}.postNorm`),
    ...matmul(
      { matrix: layer.gateUp, x: normed, out: act },
      { rows, finish: "swiglu", tuning, label: `${label}.gateUp` },
    ),
    ...matmul(
      { matrix: layer.down, x: act, out: x },
      { rows, finish: "add", tuning, label: `${label}.down` },
    ),
  ];
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
