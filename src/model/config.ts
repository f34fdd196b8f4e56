/** Rotary embedding: angle(p, i) = p * theta^(-2i/headDim), adjusted by `scaling`. */
export interface Rope {
  readonly theta: number;
  readonly scaling:
    | { readonly kind: "default" }
    | {
      readonly kind: "llama3";
      readonly factor: number;
      readonly lowFreqFactor: number;
      readonly highFreqFactor: number;
      readonly originalMaxPositions: number;
    };
}

/** What config.json says of a decoder, checked and frozen. Names follow Hugging Face, camel-cased. */
export interface ModelConfig {
  /** config.json `model_type`. */
  readonly modelType: "llama" | "qwen3";
  readonly architecture: string;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vocabSize: number;
  /** Longest context in tokens (`max_position_embeddings`). */
  readonly maxPositions: number;
  readonly rmsNormEps: number;
  readonly rope: Rope;
  /** lm_head shares the embedding matrix. */
  readonly tied: boolean;
  /** RMSNorm over each head of q and k before rope (Qwen3). */
  readonly qkNorm: boolean;
  readonly bosTokenId: number | undefined;
  /** From generation_config.json where present, else config.json. */
  readonly eosTokenIds: readonly number[];
}

export type Algorithm = "EAGLE" | "EAGLE3";

/** An EAGLE head: one decoder layer that predicts the target's next features. */
export interface DraftConfig {
  readonly algorithm: Algorithm;
  /** The one layer, in the draft's own sizes (numLayers = 1). */
  readonly layer: ModelConfig;
  /** Width of the target's hidden states (`target_hidden_size`, else `hidden_size`). */
  readonly targetHiddenSize: number;
  /** Rows of the draft's lm_head; = vocabSize when the vocabulary is not reduced. */
  readonly draftVocabSize: number;
  /** `fc.bias` is in the checkpoint (trust the tensor, not the config key). */
  readonly fcBias: boolean;
  /** EAGLE-3: the residual streams entering these 0-based target layers feed fc. Empty for EAGLE. */
  readonly auxLayers: readonly number[];
  /** The checkpoint carries its own embed_tokens. */
  readonly ownEmbedding: boolean;
  /** The checkpoint carries its own lm_head. */
  readonly ownHead: boolean;
  /** EAGLE-3: d2t present, ids are mapped draft -> target by adding d2t[id]. */
  readonly reducedVocab: boolean;
  /** EAGLE-3: residual = hidden_norm(h) instead of h (`norm_before_residual`). */
  readonly normBeforeResidual: boolean;
  /** Prefix of the layer's tensors: "midlayer" or "layers.0". */
  readonly layerPrefix: string;
}
