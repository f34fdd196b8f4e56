import type { Activation, Gating } from "../../../kernels/lib/gate.ts";
import type { QueryScale } from "../../../kernels/elementwise/elementwise.ts";
import type { Heads } from "../../../kernels/lib/heads.ts";
import type { Routing } from "../../../kernels/experts/route.ts";

/** Describes one decoder layer: what its plan computes. Architectures differ only in these values. */
export interface LayerConfig {
  readonly attention: AttentionSpec;
  readonly mlp: MlpSpec;
  /**
   * Where x += branch(x) is normed: x += branch(norm(x)) (before), x += norm(branch(x)) (after,
   * OLMo-2), or both (around, Gemma).
   */
  readonly norms: "before" | "after" | "around";
  /** Whether the layer's output is multiplied by one learned number (Gemma 4). Default false. */
  readonly scalar?: boolean;
  /** Width of the layer's own embedding of each token, added at the layer's end (Gemma 4 E2B, E4B); absent: none. */
  readonly perLayerWidth?: number;
}

/** Kinds of attention, and of recurrence in its place; `kind` also decides the weights and the plan. */
export type AttentionSpec = CachedAttention | RecurrentSpec;

/** Kinds of attention: they store keys of every token. */
export type CachedAttention = HeadAttention | LatentAttention;

/** Recurrent layers: they have a state of fixed size per sequence instead of keys and values. */
export type RecurrentSpec = ShortConv | DeltaNet;

/** softmax(cap(scale q k^T)) v with keys and values per head. */
export interface HeadAttention {
  readonly kind: "heads";
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  /** Scale of scores, before the cap. */
  readonly scale: number;
  /** Scores are cap tanh(score / cap) (Gemma 2). */
  readonly cap: number | undefined;
  /** A query sees this many keys, the last being its own token's; undefined: all up to its own. */
  readonly window: number | undefined;
  /** q, k and v have a bias (Qwen2). */
  readonly bias: boolean;
  /** o has a bias too (gpt-oss). Default false. */
  readonly outBias?: boolean;
  /** Each head has a logit that joins its softmax and has no value (gpt-oss). Default false. */
  readonly sinks?: boolean;
  /** RMSNorm of q and of k before rope: over each head (Qwen3) or over all heads (OLMo-2). */
  readonly qkNorm: "none" | "head" | "whole";
  /** q and k are normed after rope instead (Hunyuan). Default false. */
  readonly normAfterRope?: boolean;
  /**
   * Values are normed over each head, without weights: those of `v`, or the keys before their norm and rope, where
   * there is no `v` (Gemma 4). Default: those of `v` as they are.
   */
  readonly values?: "normed" | "keys";
  /** Index of the earlier layer whose keys and values this layer reads instead of its own (Gemma 4 E2B). */
  readonly sharedKv?: number;
  /** If the norms of q and k have no weights: the constants that they multiply q and k by instead. */
  readonly qkGains?: { readonly q: number; readonly k: number };
  /** Rotated queries are multiplied by this (Ministral 3). */
  readonly queryScale?: QueryScale;
  /** The input of o is multiplied by f(gate x), where x is the attention's input (Muse-Glimmer, Qwen3.5, Laguna). */
  readonly outputGate?: OutputGate;
  /** Place of its rotary embedding in `ModelConfig.ropes`. */
  readonly rope: number;
  /** Rope pairs are stored side by side (ERNIE 4.5): rows of q and k are reordered at load. Default false. */
  readonly interleaved?: boolean;
  /** Width of a partial rope if q and k have norms: then rows of q, k and the norms are reordered at load. */
  readonly turned?: number;
  /**
   * The rows of a head's gate (`outputGate`) follow the head's rows in q's matrix (Qwen3.5). Default: the gate has a
   * matrix of its own.
   */
  readonly gateInQuery?: boolean;
}

/** The gate of attention's output. */
export interface OutputGate {
  /** What f is. */
  readonly gating: Gating;
  /** What has a gate: each head, or each of its numbers. */
  readonly per: "head" | "element";
}

/** Gates of a row; 0 where attention's output has none. */
export function gateCount({ numHeads, headDim, outputGate }: HeadAttention): number {
  if (outputGate === undefined) return 0;
  return outputGate.per === "head" ? numHeads : numHeads * headDim;
}

/**
 * Multi-head latent attention (DeepSeek-V2): keys and values of all heads are projected from one latent
 * per token. Only the latent is stored, with a rotated part that all heads share.
 */
export interface LatentAttention {
  readonly kind: "latent";
  readonly numHeads: number;
  /** Width of the part of a query or key that is not rotated (`qk_nope_head_dim`). */
  readonly nopeDim: number;
  /** Width of the rotated part (`qk_rope_head_dim`). */
  readonly ropeDim: number;
  /** `v_head_dim` */
  readonly valueDim: number;
  /** Width of the latent (`kv_lora_rank`). */
  readonly rank: number;
  /** Queries are projected from a latent of this width (`q_lora_rank`); undefined: from the input. */
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

/** A causal convolution (LFM2): o(C * conv(B * x)), where B, C and x are projections of the input. */
export interface ShortConv {
  readonly kind: "conv";
  /** Columns of B, of C and of x. */
  readonly width: number;
  /** Tokens that the convolution reads, its own the last. */
  readonly taps: number;
  readonly window: undefined;
}

/**
 * Gated DeltaNet (Qwen3.5): a convolution of queries, keys and values, then a recurrence with a state per value head,
 * which keys address.
 */
export interface DeltaNet {
  readonly kind: "delta";
  readonly keyHeads: number;
  /** A multiple of `keyHeads`: neighbouring value heads share keys and queries. */
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Tokens that the convolution reads, its own the last. */
  readonly taps: number;
  /** Whether the checkpoint's matrices are fused and store all rows of a key head together (Qwen3-Next). */
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

/** Whether any layer is recurrent. */
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

/** The weighted sum of the experts that a router chooses for a row, and of a shared expert that every row runs. */
export interface MixtureMlp {
  readonly kind: "mixture";
  readonly routing: Routing;
  /** Width of an expert, down(silu(gate x) * up x). */
  readonly intermediateSize: number;
  /** The experts' activation; default silu. */
  readonly activation?: Activation;
  /** The shared expert, added for every row (DeepSeek). */
  readonly shared: DenseMlp | undefined;
  /**
   * Gemma 4: an MLP beside the experts. It reads the normed input; experts and router norm the input with weights of
   * their own. The outputs of MLP and experts are normed before they are added. Each expert has a factor of its share.
   */
  readonly parallelMlp?: DenseMlp;
  /**
   * gpt-oss: gate and up are neighbouring rows of one matrix, the router and both matrices have biases, and an expert
   * is down(clamped SwiGLU of gate and up), see kernels/experts/expert_gate.wgsl. Absent: as above.
   */
  readonly interleavedGate?: { readonly limit: number };
  /** Whether the shared expert's share is sigmoid(gate x) (Qwen3.5); default: it is 1. */
  readonly sharedGate?: boolean;
  /** Router logits are cap tanh(logit / cap) before they become scores (Laguna). */
  readonly logitCap?: number;
}

/** Elements that an attention's plan stores: per token (`keys`, `values`) or per row (the others). */
export interface AttentionSizes {
  readonly keys: number;
  /** 0 where values are parts of keys. */
  readonly values: number;
  /** 0 if the matmul's epilogue already finishes q, k and v of several rows. */
  readonly qkv: number;
  /** The same for a single row, where attention finishes q, k and v. */
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

/** Heads as the attention kernels see them: a latent is one key that all query heads share. */
export function headsOf(
  spec: CachedAttention,
  { tablePages, kvDtype }: Pick<Heads, "tablePages" | "kvDtype">,
): Heads {
  const kept = { heads: spec.numHeads, tablePages, kvDtype };
  return spec.kind === "latent"
    ? { ...kept, kvHeads: 1, headDim: spec.rank + spec.ropeDim, rank: spec.rank }
    : { ...kept, kvHeads: spec.numKvHeads, headDim: spec.headDim };
}

/** Number of elements of a head that the rope may rotate. */
export function ropeWidth(spec: CachedAttention): number {
  return spec.kind === "latent" ? spec.ropeDim : spec.headDim;
}

/** f32 elements per row of an MLP's gated activations. */
export function actWidth(spec: MlpSpec): number {
  if (spec.kind === "dense") return spec.intermediateSize;
  const dense = [spec.shared, spec.parallelMlp].map((each) => each?.intermediateSize ?? 0);
  return Math.max(maxJobs(spec) * spec.intermediateSize, ...dense);
}

/** Returns how many experts the shared expert equals, if it is as wide as a whole number of them; else 0. */
export function sharedExperts({ shared, intermediateSize }: MixtureMlp): number {
  const count = (shared?.intermediateSize ?? 0) / intermediateSize;
  return shared?.activation === "silu" && Number.isInteger(count) ? count : 0;
}

/** Most gated MLPs of a row in any layer. */
export function maxRowJobs(layers: readonly Pick<LayerConfig, "mlp">[]): number {
  return Math.max(...layers.map(({ mlp }) => mlp.kind === "mixture" ? maxJobs(mlp) : 1));
}

/** Most experts of a row, shared ones counted. */
function maxJobs(spec: MixtureMlp): number {
  return spec.routing.topK + sharedExperts(spec);
}
