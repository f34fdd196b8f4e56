import type { Activation } from "../../../kernels/lib/gate.ts";
import type { QueryScale } from "../../../kernels/elementwise/elementwise.ts";
import type { Heads } from "../../../kernels/lib/heads.ts";
import type { Routing } from "../../../kernels/experts/route.ts";

/** One decoder layer as a value: what its plan computes. Architectures differ in these alone. */
export interface LayerConfig {
  readonly attention: AttentionSpec;
  readonly mlp: MlpSpec;
  /**
   * Where x += branch(x) is normed: x += branch(norm(x)) (before), x += norm(branch(x)) (after,
   * OLMo-2), or both (around, Gemma).
   */
  readonly norms: "before" | "after" | "around";
  /** The layer's output is multiplied by one learned number (Gemma 4). Default false. */
  readonly scalar?: boolean;
  /** Width of the layer's own embedding of each token, which enters it last (Gemma 4 E2B, E4B); absent: none. */
  readonly perLayerWidth?: number;
}

/** Kinds of attention and of what takes its place; `kind` also decides the weights and the plan. */
export type AttentionSpec = CachedAttention | RecurrentSpec;

/** Kinds of attention, which keep keys of every token. */
export type CachedAttention = HeadAttention | LatentAttention;

/** What has a state of fixed size for each sequence in the place of keys and values. */
export type RecurrentSpec = ShortConv | DeltaNet;

/** softmax(cap(scale q k^T)) v with keys and values a head. */
export interface HeadAttention {
  readonly kind: "heads";
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  /** Scale of scores, before the cap. */
  readonly scale: number;
  /** Scores are cap tanh(score / cap) (Gemma 2). */
  readonly cap: number | undefined;
  /** A query sees this many keys, its own the last; undefined = all before it. */
  readonly window: number | undefined;
  /** q, k and v have a bias (Qwen2). */
  readonly bias: boolean;
  /** So has o (gpt-oss). Default false. */
  readonly outBias?: boolean;
  /** Each head has a logit that joins its softmax and has no value (gpt-oss). Default false. */
  readonly sinks?: boolean;
  /** RMSNorm of q and of k before rope: over each head (Qwen3) or over all heads (OLMo-2). */
  readonly qkNorm: "none" | "head" | "whole";
  /**
   * Values are normed over each head, without weights: those of `v`, or the keys before their norm and rope, where
   * there is no `v` (Gemma 4). Default: those of `v` as they are.
   */
  readonly values?: "normed" | "keys";
  /** The layer before this one whose keys and values it reads: it makes none of its own (Gemma 4 E2B). */
  readonly sharedKv?: number;
  /** Where the norms of q and k have no weights: what they multiply each by instead. */
  readonly qkGains?: { readonly q: number; readonly k: number };
  /** Rotated queries are multiplied by this (Ministral 3). */
  readonly queryScale?: QueryScale;
  /**
   * What o reads is multiplied by sigmoid(gate x), of a matrix of its own: x is the attention's input (Muse-Glimmer).
   */
  readonly outputGate?: boolean;
  /** Place of its rotary embedding in `ModelConfig.ropes`. */
  readonly rope: number;
  /** Width of a partial rope where q and k have norms: rows of q, of k and of the norms are reordered for it. */
  readonly turned?: number;
  /**
   * Rows of a head's gate (`outputGate`) follow its own in the query's matrix (Qwen3.5). Default: they have another.
   */
  readonly gateInQuery?: boolean;
}

/**
 * Multi-head latent attention (DeepSeek-V2): keys and values of all heads are made of one latent a
 * token, which alone is kept, with a rotated part that all heads share.
 */
export interface LatentAttention {
  readonly kind: "latent";
  readonly numHeads: number;
  /** Part of a query or key that is not rotated, made of the latent (`qk_nope_head_dim`). */
  readonly nopeDim: number;
  /** The part that is (`qk_rope_head_dim`). */
  readonly ropeDim: number;
  /** `v_head_dim` */
  readonly valueDim: number;
  /** Width of the latent (`kv_lora_rank`). */
  readonly rank: number;
  /** Queries are made of a latent of this width (`q_lora_rank`); undefined = of the input. */
  readonly queryRank: number | undefined;
  /** Scale of scores. */
  readonly scale: number;
  /** Rope pairs are stored side by side. */
  readonly interleaved: boolean;
  /** Rotated queries are multiplied by this (Mistral Small 4). */
  readonly queryScale?: QueryScale;
  readonly window: undefined;
  /** Place of its rotary embedding in `ModelConfig.ropes`. */
  readonly rope: number;
}

/** A convolution over a token and those before it (LFM2): o(C * conv(B * x)), B, C and x made of the input. */
export interface ShortConv {
  readonly kind: "conv";
  /** Columns of B, of C and of x. */
  readonly width: number;
  /** Tokens that the convolution reads, its own the last. */
  readonly taps: number;
  readonly window: undefined;
}

/**
 * Gated DeltaNet (Qwen3.5): a convolution of queries, keys and values, and a state for each head of values that keys
 * address.
 */
export interface DeltaNet {
  readonly kind: "delta";
  readonly keyHeads: number;
  /** A multiple of `keyHeads`: neighbours share keys and queries. */
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Tokens that the convolution reads, its own the last. */
  readonly taps: number;
  /** The rows of a head of keys are together in the checkpoint's matrices (Qwen3-Next). */
  readonly fused: boolean;
  readonly window: undefined;
}

/** Columns that a recurrent layer's convolution reads. */
export function convWidth(spec: RecurrentSpec): number {
  if (spec.kind === "conv") return spec.width;
  const { keyHeads, valueHeads, keyDim, valueDim } = spec;
  return 2 * keyHeads * keyDim + valueHeads * valueDim;
}

/** Whether a layer has a state of fixed size, and no keys and values. */
export function isRecurrent(spec: AttentionSpec): spec is RecurrentSpec {
  return spec.kind === "conv" || spec.kind === "delta";
}

/** Whether any layer does. */
export function hasState({ layers }: { readonly layers: readonly LayerConfig[] }): boolean {
  return layers.some(({ attention }) => isRecurrent(attention));
}

/** Kinds of MLP. */
export type MlpSpec = DenseMlp | MixtureMlp;

/** down(activation(gate x) * up x). */
export interface DenseMlp {
  readonly kind: "dense";
  readonly intermediateSize: number;
  readonly activation: Activation;
}

/** The weighted sum of the experts that a router chooses for a row, and of one for all rows. */
export interface MixtureMlp {
  readonly kind: "mixture";
  readonly routing: Routing;
  /** Width of an expert, down(silu(gate x) * up x). */
  readonly intermediateSize: number;
  /** Of the experts; default silu. */
  readonly activation?: Activation;
  /** Added for every row (DeepSeek). */
  readonly shared: DenseMlp | undefined;
  /**
   * Gemma 4: an MLP that reads the layer's normed input, while experts and router norm it by weights of their own. Both
   * outputs are normed before they are added, and each expert has a factor that its share is multiplied by.
   */
  readonly parallelMlp?: DenseMlp;
  /**
   * gpt-oss: gate and up are neighbouring rows of one matrix, the router and both matrices have biases, and an expert
   * is down(clamped SwiGLU of gate and up), see kernels/experts/expert_gate.wgsl. Absent: as above.
   */
  readonly paired?: { readonly limit: number };
  /** The shared expert counts sigmoid(gate x) (Qwen3.5); default: 1. */
  readonly sharedGate?: boolean;
}

/** What an attention's plan takes, elements a token (`keys`, `values`) or row. */
export interface AttentionSizes {
  readonly keys: number;
  /** 0 where values are parts of keys. */
  readonly values: number;
  /** 0 where q, k and v of several rows leave their matmul finished. */
  readonly qkv: number;
  /** The same for a single row, whose attention finishes them. */
  readonly ownRow: number;
  readonly q: number;
  readonly attentionOutput: number;
}

const NO_CELLS: AttentionSizes = {
  keys: 0,
  values: 0,
  qkv: 0,
  ownRow: 0,
  q: 0,
  attentionOutput: 0,
};

export function attentionSizes(spec: AttentionSpec): AttentionSizes {
  if (spec.kind === "latent") return latentSizes(spec);
  if (isRecurrent(spec)) return NO_CELLS;
  const { numHeads, numKvHeads, headDim, qkNorm } = spec;
  const q = numHeads * headDim;
  const keys = numKvHeads * headDim;
  const ownRow = spec.sharedKv === undefined ? q + 2 * keys : q;
  const qkv = qkNorm === "none" ? 0 : ownRow;
  return { keys, values: keys, qkv, ownRow, q, attentionOutput: q };
}

/**
 * `qkv` holds queries before they are absorbed, then the inputs of the latents, and then values; see
 * latent_attention.ts.
 */
function latentSizes(spec: LatentAttention): AttentionSizes {
  const { numHeads, nopeDim, ropeDim, valueDim, rank, queryRank = 0 } = spec;
  const keys = rank + ropeDim;
  const q = Math.max(numHeads * keys, queryRank);
  const projected = numHeads * (nopeDim + ropeDim) + keys;
  const qkv = Math.max(projected + projected % 2, numHeads * valueDim);
  return { keys, values: 0, qkv, ownRow: 0, q, attentionOutput: q };
}

/** Heads as attention over the pages sees them: latents are one key that all queries share. */
export function headsOf(
  spec: CachedAttention,
  { tablePages, kvDtype }: Pick<Heads, "tablePages" | "kvDtype">,
): Heads {
  const kept = { heads: spec.numHeads, tablePages, kvDtype };
  return spec.kind === "latent"
    ? { ...kept, kvHeads: 1, headDim: spec.rank + spec.ropeDim, rank: spec.rank }
    : { ...kept, kvHeads: spec.numKvHeads, headDim: spec.headDim };
}

/** Width of what the rope may turn. */
export function ropeWidth(spec: CachedAttention): number {
  return spec.kind === "latent" ? spec.ropeDim : spec.headDim;
}

/** f32 elements a row of the gated part of an MLP. */
export function actWidth(spec: MlpSpec): number {
  if (spec.kind === "dense") return spec.intermediateSize;
  const dense = [spec.shared, spec.parallelMlp].map((each) => each?.intermediateSize ?? 0);
  return Math.max(mostJobs(spec) * spec.intermediateSize, ...dense);
}

/** Returns how many experts the shared expert equals, if it is as wide as a whole number of them; else 0. */
export function sharedExperts({ shared, intermediateSize }: MixtureMlp): number {
  const count = (shared?.intermediateSize ?? 0) / intermediateSize;
  return shared?.activation === "silu" && Number.isInteger(count) ? count : 0;
}

/** Most gated MLPs of a row in any layer. */
export function mostRowJobs(layers: readonly Pick<LayerConfig, "mlp">[]): number {
  return Math.max(...layers.map(({ mlp }) => mlp.kind === "mixture" ? mostJobs(mlp) : 1));
}

/** Most experts of a row, shared ones counted. */
export function mostJobs(spec: MixtureMlp): number {
  return spec.routing.topK + sharedExperts(spec);
}
