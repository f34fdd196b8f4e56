/** One decoder layer as a value: what its plan computes. Architectures differ in these alone. */
export interface LayerSpec {
  readonly attention: AttentionSpec;
  readonly mlp: MlpSpec;
  /**
   * Where x += branch(x) is normed: x += branch(norm(x)) (before), x += norm(branch(x)) (after,
   * OLMo-2), or both (around, Gemma).
   */
  readonly norms: "before" | "after" | "around";
}

/** Kinds of attention; `kind` also tells the weights and the plan. */
export type AttentionSpec = HeadAttention;

/** softmax(cap(scale q k^T)) v with keys and values a head. */
export interface HeadAttention {
  readonly kind: "heads";
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  /** Of scores, before the cap. */
  readonly scale: number;
  /** Scores are cap tanh(score / cap) (Gemma 2). */
  readonly cap: number | undefined;
  /** A query sees this many keys, its own the last; undefined = all before it. */
  readonly window: number | undefined;
  /** q, k and v have a bias (Qwen2). */
  readonly bias: boolean;
  /** RMSNorm of q and of k before rope: over each head (Qwen3) or over all heads (OLMo-2). */
  readonly qkNorm: "none" | "head" | "whole";
  /** Place of its rotary embedding in `ModelConfig.ropes`. */
  readonly rope: number;
}

/** Kinds of MLP. */
export type MlpSpec = DenseMlp;

/** down(activation(gate x) * up x). */
export interface DenseMlp {
  readonly kind: "dense";
  readonly intermediateSize: number;
  readonly activation: Activation;
}

/** silu(g) = g / (1 + exp(-g)); gelu_tanh is the approximation of GELU by tanh. */
export type Activation = "silu" | "gelu_tanh";

/**
 * Elements a token or row: cached keys and values, and what the attention's plan writes in f32; `qkv`
 * is 0 where q, k and v leave their matmul finished.
 */
export function attentionSizes(
  { numHeads, numKvHeads, headDim, qkNorm }: AttentionSpec,
): { readonly kv: number; readonly qkv: number; readonly q: number; readonly mixed: number } {
  const q = numHeads * headDim;
  const kv = 2 * numKvHeads * headDim;
  return { kv, qkv: qkNorm === "none" ? 0 : q + kv, q, mixed: q };
}
