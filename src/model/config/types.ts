/** What config files say, checked: shared by all that reads or uses them. */
import type { Fields } from "../files/fields.ts";
import type { DenseMlp, HeadAttention, LayerConfig } from "./layer_config.ts";
import type { Rope } from "./rope_config.ts";
import type { TensorNames } from "./tensor_names.ts";

/** What config.json says of a decoder, checked and frozen. Names follow Hugging Face, camel-cased. */
export interface ModelConfig {
  /** config.json `model_type`. */
  readonly modelType: string;
  readonly architecture: string;
  readonly hiddenSize: number;
  readonly vocabSize: number;
  /** Longest context in tokens (`max_position_embeddings`, or what its rope scaling reaches). */
  readonly maxPositions: number;
  readonly rmsNormEps: number;
  /** What is added to the weights of every norm: 1 for Gemma's (1 + w), else 0. */
  readonly normOffset: number;
  /** The same for the norm before the head, where it is another. */
  readonly finalNormOffset?: number;
  /** Epsilon of norms after branches, where it is another than `rmsNormEps`. */
  readonly branchNormEps?: number;
  /** Embeddings are normed without weights before the first layer. */
  readonly embedNorm?: boolean;
  /** The embedding enters the first layer times this. */
  readonly embedScale: number;
  /** Logits, scaled, are cap tanh(logits / cap) (Gemma 2). */
  readonly logitCap: number | undefined;
  /** Logits are multiplied by this (Granite: 1 / `logits_scaling`), else 1. */
  readonly logitScale: number;
  /** What a branch adds to the residual stream is multiplied by this (Granite), else 1. */
  readonly residualScale: number;
  /** lm_head shares the embedding matrix. */
  readonly tied: boolean;
  readonly layers: readonly LayerConfig[];
  /**
   * A table of embeddings for all layers that have their own (`perLayerWidth`), and how many tokens it has. Absent:
   * none.
   */
  readonly perLayer?: {
    readonly width: number;
    readonly vocabSize: number;
    /** What its rows are multiplied by. */
    readonly scale: number;
  };
  /** Rotary embeddings; an attention names one by its place here. */
  readonly ropes: readonly Rope[];
  readonly names: TensorNames;
  /** Layers after the last that draft (`num_nextn_predict_layers`). Absent: none. */
  readonly nextnLayers?: number;
  /** Instead, checkpoints may have such a layer in tensors `mtp.*` (Qwen3.5): like the last with attention. */
  readonly mtp?: boolean;
  readonly bosTokenId: number | undefined;
  /** Read from generation_config.json if it is present, else from config.json. */
  readonly eosTokenIds: readonly number[];
}

/** What drafts. STANDALONE: a whole causal model of the target's vocabulary. */
export type Algorithm = AnyDraftConfig["algorithm"];

/** Any draft. */
export type AnyDraftConfig = DraftConfig | StandaloneConfig;

/** A causal model that drafts for another. */
export interface StandaloneConfig {
  readonly algorithm: "STANDALONE";
  /** All of it; named as an EAGLE head's one layer is. */
  readonly layer: ModelConfig;
  /** Tokens that it may draft: its own, as far as the target has them too. */
  readonly draftVocabSize: number;
}

/** An EAGLE head: one decoder layer that predicts the target's next features. */
export interface DraftConfig {
  /**
   * NEXTN: the layer for the token after the next in checkpoints of DeepSeek-V3 and GLM-4.7-Flash, run as an EAGLE
   * head.
   */
  readonly algorithm: "EAGLE" | "EAGLE3" | "NEXTN";
  /** The one layer, in the draft's own sizes. */
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
  /**
   * What is normed before `fc`. EAGLE-3: the three aux hidden states as one row (`input_norm`,
   * `norm_before_fc`) or each alone (`fc_norm`). EAGLE-1: embedding and hidden row, each (HASS,
   * `add_para_norm`), as in NEXTN.
   */
  readonly inputNorms: "none" | "whole" | "each";
  /** EAGLE-3 (`norm_output`), NEXTN: the next draft step is fed norm(g) instead of g. */
  readonly normOutput: boolean;
  /** "model." where an export puts it before every tensor but lm_head, d2t and t2d, else "". */
  readonly prefix: string;
  /** Name of the first matrix's tensors, after `prefix`: "fc", "fusion_fc" or "layers.N.eh_proj". */
  readonly fc: string;
  /** Name of the layer's tensors, after `prefix`: "midlayer", "layers.0" or "transformer". */
  readonly layerPrefix: string;
  /** NEXTN: names of the norms after `prefix`, of embedding and hidden row and of the layer's output. */
  readonly nextnNorms?: { readonly inputs: readonly [string, string]; readonly output: string };
}

/** What a target and a draft layer have in common: all but the special tokens. */
export type DecoderConfig = Omit<ModelConfig, "bosTokenId" | "eosTokenIds">;

/** What config.json calls a model. */
export interface FamilyName {
  /** The name in `architectures` of config.json. */
  readonly architecture: string;
  /** config.json `model_type`. */
  readonly modelType: string;
}

/** How the config.json of one architecture is read: see docs/models.md. */
export interface Family extends FamilyName {
  /** Further names of the same text model. */
  readonly aliases?: readonly FamilyName[];
  /**
   * Names of models that also read images or audio and whose `text_config` describes this decoder.
   * Its `model_type` decides between families that share a wrapper; without one it is the first family.
   */
  readonly wrappers?: readonly FamilyName[];
  /** Keys that mean the same as others, which they take the place of: by the others' names. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** What transformers assumes where config.json is silent, by its keys. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Biases (`attention_bias`, `mlp_bias`) that its layers follow; others refuse a config that has them. */
  readonly biases?: readonly string[];
  /** Key of the MLPs' activation; default: `hidden_act`. */
  readonly activation?: string;
  /** Layer `i`, from what the fields that all share say; default: as it is, normed before. */
  readonly layer?: (config: Fields, base: BaseLayer, i: number) => LayerConfig;
  /** The embeddings that layers name; default: the one of `parseRope`. */
  readonly ropes?: (config: Fields, headDim: number) => readonly Rope[];
  /** What is neither in a layer nor shared. */
  readonly model?: (config: Fields, hiddenSize: number) => Partial<ModelExtras>;
  /** Default: Llama's. */
  readonly names?: TensorNames;
}

type ModelExtras = Pick<
  ModelConfig,
  | "normOffset"
  | "finalNormOffset"
  | "branchNormEps"
  | "embedNorm"
  | "embedScale"
  | "logitCap"
  | "logitScale"
  | "residualScale"
  | "maxPositions"
  | "nextnLayers"
  | "perLayer"
  | "mtp"
>;

/** A layer of causal attention over heads and a gated MLP, without any family's particulars. */
export interface BaseLayer {
  readonly attention: HeadAttention;
  readonly mlp: DenseMlp;
}
