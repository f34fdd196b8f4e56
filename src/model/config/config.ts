import { UsageError } from "../../errors.ts";
import { readArchitecture } from "./architectures.ts";
import { type Fields, integer, integers, isObject, quote, value } from "../files/fields.ts";
import type { LayerSpec } from "./layer_spec.ts";
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
  /** The embedding enters the first layer times this. */
  readonly embedScale: number;
  /** Logits are cap tanh(logits / cap) (Gemma 2). */
  readonly logitCap: number | undefined;
  /** lm_head shares the embedding matrix. */
  readonly tied: boolean;
  readonly layers: readonly LayerSpec[];
  /** Rotary embeddings; an attention names one by its place here. */
  readonly ropes: readonly Rope[];
  readonly names: TensorNames;
  /** Layers after the last that draft (`num_nextn_predict_layers`). Absent: none. */
  readonly nextnLayers?: number;
  readonly bosTokenId: number | undefined;
  /** From generation_config.json where present, else config.json. */
  readonly eosTokenIds: readonly number[];
}

/**
 * The checked, frozen config of a target. Defaults are those of transformers.
 * @param name the checkpoint, for messages.
 * @param config parsed config.json.
 * @param generationConfig parsed generation_config.json, undefined when there is none.
 * @throws UsageError naming the field and what is known or allowed.
 */
export function parseModelConfig(
  name: string,
  config: unknown,
  generationConfig: unknown,
): ModelConfig {
  const fields = fieldsOf(name, "config.json", config);
  const generation = fieldsOf(name, "generation_config.json", generationConfig ?? {});
  const decoder = readArchitecture(fields);
  const last = decoder.vocabSize - 1;
  const eosTokenIds = integers(generation, "eos_token_id", last) ??
    integers(fields, "eos_token_id", last) ?? [];
  const bosTokenId = value(fields, "bos_token_id") === undefined
    ? undefined
    : integer(fields, "bos_token_id", { least: 0, most: last });
  return Object.freeze({ ...decoder, bosTokenId, eosTokenIds });
}

/** A checkpoint's JSON file as fields to read. @throws UsageError when it is not an object. */
export function fieldsOf(name: string, file: string, json: unknown): Fields {
  if (isObject(json)) return { name, where: file, values: json };
  throw new UsageError(`Cannot use ${quote(name)}: ${file} is not a JSON object`);
}

/** NEXTN: the layer for the token after the next in checkpoints of DeepSeek-V3, run as an EAGLE head. */
export type Algorithm = "EAGLE" | "EAGLE3" | "NEXTN";

/** An EAGLE head: one decoder layer that predicts the target's next features. */
export interface DraftConfig {
  readonly algorithm: Algorithm;
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
   * What is normed before `fc`. EAGLE-3: the three taps as one row (`input_norm`, `norm_before_fc`)
   * or each alone (`fc_norm`). EAGLE-1: embedding and hidden row, each (HASS, `add_para_norm`), as
   * in NEXTN.
   */
  readonly inputNorms: "none" | "whole" | "each";
  /** EAGLE-3 (`norm_output`), NEXTN: the next draft step is fed norm(g) instead of g. */
  readonly normOutput: boolean;
  /** "model." where an export puts it before every tensor but lm_head, d2t and t2d, else "". */
  readonly prefix: string;
  /** Of the tensors of the first matrix, after `prefix`: "fc", "fusion_fc" or "layers.N.eh_proj". */
  readonly fc: string;
  /** Of the layer's tensors, after `prefix`: "midlayer", "layers.0" or "transformer". */
  readonly layerPrefix: string;
}
