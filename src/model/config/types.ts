/** Types of checked configs, shared by all code that reads or uses them. */
import type { Fields } from "../files/fields.ts";
import type { DenseMlp, HeadAttention, LayerConfig } from "./layer_config.ts";
import type { Rope } from "./rope_config.ts";
import type { TensorNames } from "./tensor_names.ts";

/** A decoder's config.json, checked and frozen. Names follow Hugging Face, camel-cased. */
export interface ModelConfig {
  /** config.json `model_type`. */
  readonly modelType: string;
  readonly architecture: string;
  readonly hiddenSize: number;
  readonly vocabSize: number;
  /** Longest context in tokens (`max_position_embeddings`, or what its rope scaling reaches). */
  readonly maxPositions: number;
  readonly rmsNormEps: number;
  /** Added to the weights of every norm: 1 for Gemma's (1 + w), else 0. */
  readonly normOffset: number;
  /** The offset for the norm before the head, if it differs. */
  readonly finalNormOffset?: number;
  /** Epsilon of norms after branches, if it differs from `rmsNormEps`. */
  readonly branchNormEps?: number;
  /** Whether embeddings are normed, without weights, before the first layer. */
  readonly embedNorm?: boolean;
  /** Factor of the embeddings before the first layer. */
  readonly embedScale: number;
  /** Soft cap of the scaled logits: cap tanh(logits / cap) (Gemma 2). */
  readonly logitCap: number | undefined;
  /** Logits are multiplied by this (Granite: 1 / `logits_scaling`), else 1. */
  readonly logitScale: number;
  /** What a branch adds to the residual stream is multiplied by this (Granite), else 1. */
  readonly residualScale: number;
  /** Whether lm_head shares the embedding matrix. */
  readonly tied: boolean;
  readonly layers: readonly LayerConfig[];
  /**
   * The table with the layers' own embeddings (`perLayerWidth`) of all layers, and its number of tokens. Absent: layers
   * have none.
   */
  readonly perLayer?: {
    readonly width: number;
    readonly vocabSize: number;
    /** Factor of its rows. */
    readonly scale: number;
  };
  /** Rotary embeddings; an attention refers to one by its index here. */
  readonly ropes: readonly Rope[];
  readonly names: TensorNames;
  /** Number of NextN layers after the last layer, which draft (`num_nextn_predict_layers`). Absent: none. */
  readonly nextnLayers?: number;
  /** Whether checkpoints may instead have such a layer in tensors `mtp.*` (Qwen3.5), like the last attention layer. */
  readonly mtp?: boolean;
  /** Read from generation_config.json if it is present, else from config.json. */
  readonly eosTokenIds: readonly number[];
}

/** The kind of draft model. STANDALONE: a whole causal model with the target's vocabulary. */
export type Algorithm = AnyDraftConfig["algorithm"];

/** Any draft. */
export type AnyDraftConfig = DraftConfig | StandaloneConfig;

/** A causal model that drafts for another. */
export interface StandaloneConfig {
  readonly algorithm: "STANDALONE";
  /** The whole model's config; the field has the name of an EAGLE head's one layer. */
  readonly layer: ModelConfig;
  /** Number of tokens that it may draft: those of its vocabulary that the target has too. */
  readonly draftVocabSize: number;
}

/** An EAGLE head: one decoder layer that predicts the target's next features. */
export interface DraftConfig {
  /**
   * NEXTN: the multi-token prediction layer in checkpoints of DeepSeek-V3 and GLM-4.7-Flash, which predicts the token
   * after the next one, run as an EAGLE head.
   */
  readonly algorithm: "EAGLE" | "EAGLE3" | "NEXTN";
  /** The one layer, in the draft's own sizes. */
  readonly layer: ModelConfig;
  /** Width of the target's hidden states (`target_hidden_size`, else `hidden_size`). */
  readonly targetHiddenSize: number;
  /** Rows of the draft's lm_head; = vocabSize when the vocabulary is not reduced. */
  readonly draftVocabSize: number;
  /** Whether `fc.bias` is in the checkpoint (trust the tensor, not the config key). */
  readonly fcBias: boolean;
  /** EAGLE-3: the residual streams entering these 0-based target layers feed fc. Empty for EAGLE. */
  readonly auxLayers: readonly number[];
  /** Whether the checkpoint has its own embed_tokens. */
  readonly ownEmbedding: boolean;
  /** Whether the checkpoint has its own lm_head. */
  readonly ownHead: boolean;
  /** EAGLE-3: whether the checkpoint has d2t; the target's id is then the draft's id + d2t[id]. */
  readonly reducedVocab: boolean;
  /** EAGLE-3: residual = hidden_norm(h) instead of h (`norm_before_residual`). */
  readonly normBeforeResidual: boolean;
  /**
   * Norms before `fc`. EAGLE-3: the three aux hidden states are normed as one row (`input_norm`,
   * `norm_before_fc`) or each alone (`fc_norm`). EAGLE-1: embedding and hidden row are normed, each
   * alone (HASS, `add_para_norm`), as in NEXTN.
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
  /** NEXTN: names, after `prefix`, of the norms of embedding and hidden row (`inputs`) and of the layer's output. */
  readonly nextnNorms?: { readonly inputs: readonly [string, string]; readonly output: string };
}

/** What a target and a draft layer have in common: all but the end tokens. */
export type DecoderConfig = Omit<ModelConfig, "eosTokenIds">;

/** The names that config.json has for a model. */
export interface FamilyName {
  /** The name in `architectures` of config.json. */
  readonly architecture: string;
  /** config.json `model_type`. */
  readonly modelType: string;
}

/** How the config.json of one architecture is read: see docs/models.md. */
export interface Family extends FamilyName {
  /**
   * Names of models that also read images or audio and whose `text_config` describes this decoder.
   * Its `model_type` decides between families that share a wrapper; without one it is the first family.
   */
  readonly wrappers?: readonly FamilyName[];
  /** The family's own keys for standard ones, by the standard key. Where config.json has both, the own key wins. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** The values that transformers uses for keys that config.json does not have. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Keys of biases (`attention_bias`, `mlp_bias`) that its layers support; without them such a config is refused. */
  readonly biases?: readonly string[];
  /**
   * An unscaled rope turns `partial_rotary_factor` of a head. Default: it turns whole heads, whatever config.json says.
   */
  readonly partialRope?: boolean;
  /** The last layer sees everything, even if `layer_types` says that it has a window; default: no. */
  readonly fullLastLayer?: boolean;
  /** Key of the MLPs' activation; default: `hidden_act`. */
  readonly activation?: string;
  /** Makes layer `i` from the base layer that all families share; default: the base layer, normed before branches. */
  readonly layer?: (config: Fields, base: BaseLayer, i: number) => LayerConfig;
  /** The rotary embeddings that layers refer to; default: the one of `parseRope`. */
  readonly ropes?: (config: Fields, headDim: number) => readonly Rope[];
  /** Fields of the model that are neither in a layer nor common to all families. */
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
