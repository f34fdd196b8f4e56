import { isSliding, layerCount, MAX, MAX_VOCAB, slidingWindow } from "../decoder_config.ts";
import {
  type Fields,
  flag,
  integer,
  nested,
  positive,
  quote,
  unusable,
  value,
} from "../../files/fields.ts";
import type { DenseMlp, HeadAttention, LayerConfig, MlpSpec } from "../layer_config.ts";
import { parseMixture } from "../mixture_config.ts";
import { FULL, type Rope, ropesByLayerType, SLIDING } from "../rope_config.ts";
import { llamaNamesBut, type TensorNames } from "../tensor_names.ts";
import type { BaseLayer, DecoderConfig, Family } from "../types.ts";

const MAX_WIDTH = 2 ** 12;

/** Rope parameters if config.json has none. */
const ROPES = {
  sliding_attention: { rope_type: "default", rope_theta: 10_000 },
  full_attention: {
    rope_type: "proportional",
    partial_rotary_factor: 0.25,
    rope_theta: 1_000_000,
  },
};

const NAMES: TensorNames = {
  ...llamaNamesBut({
    postNorm: "pre_feedforward_layernorm",
    router: "router.proj",
    expertGate: "experts.{expert}.gate_proj",
    expertUp: "experts.{expert}.up_proj",
    expertDown: "experts.{expert}.down_proj",
  }),
  expertStacks: { gateUp: "experts.gate_up_proj", down: "experts.down_proj" },
};

/** What the text models have in common, as in transformers' configs. */
const DEFAULTS = {
  vocab_size: 262_144,
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: 30,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 256,
  global_head_dim: 512,
  hidden_activation: "gelu_pytorch_tanh",
  tie_word_embeddings: true,
};

/**
 * Gemma 4, text. Full and sliding layers differ in the size and number of their heads and in their rope; norms have
 * plain weights, values are normed, scores have no scale. Layers may share keys and values, have an MLP beside their
 * experts, and an embedding of their own. Source: Gemma4TextModel of transformers.
 */
export const GEMMA4: Family = {
  architecture: "Gemma4ForCausalLM",
  modelType: "gemma4_text",
  wrappers: [{ architecture: "Gemma4ForConditionalGeneration", modelType: "gemma4" }],
  activation: "hidden_activation",
  fullLastLayer: true,
  defaults: {
    ...DEFAULTS,
    max_position_embeddings: 131_072,
    sliding_window: 512,
    vocab_size_per_layer_input: 262_144,
    hidden_size_per_layer_input: 256,
  },
  layer,
  ropes,
  model,
  names: NAMES,
};

/** Gemma 4 12B: as Gemma 4, without experts and without embeddings of layers, whose keys transformers does not read. */
export const GEMMA4_UNIFIED: Family = {
  architecture: "Gemma4UnifiedForCausalLM",
  modelType: "gemma4_unified_text",
  wrappers: [{
    architecture: "Gemma4UnifiedForConditionalGeneration",
    modelType: "gemma4_unified",
  }],
  activation: "hidden_activation",
  fullLastLayer: true,
  defaults: { ...DEFAULTS, max_position_embeddings: 262_144, sliding_window: 1024 },
  layer: (config, base, i) => layer(unified(config), base, i),
  ropes,
  model: (config, hiddenSize) => model(unified(config), hiddenSize),
  names: NAMES,
};

function unified(config: Fields): Fields {
  const without = { hidden_size_per_layer_input: 0, enable_moe_block: false };
  return { ...config, values: { ...config.values, ...without } };
}

function layer(config: Fields, base: BaseLayer, i: number): LayerConfig {
  const width = perLayerWidth(config);
  if (width > 0 && base.mlp.activation !== "gelu_tanh") {
    // graph/gemma4.ts gates them with this one.
    const act = quote(value(config, "hidden_activation"));
    const why = `has hidden_activation ${act} with embeddings of layers`;
    throw unusable(config, `${why}, expected "gelu_pytorch_tanh"`);
  }
  const sharedKv = sharedLayer(config, i);
  const double = sharedKv !== undefined && flag(config, "use_double_wide_mlp", false);
  const dense = { ...base.mlp, intermediateSize: base.mlp.intermediateSize * (double ? 2 : 1) };
  return {
    attention: {
      ...attention(config, base.attention, i),
      ...sharedKv !== undefined && { sharedKv },
    },
    mlp: mlpOf(config, base, dense),
    norms: "around",
    scalar: true,
    ...width > 0 && { perLayerWidth: width },
  };
}

function attention(config: Fields, base: HeadAttention, i: number): HeadAttention {
  const local = isLocal(config, i);
  const keysAreValues = !local && flag(config, "attention_k_eq_v", false);
  const own = headsOf(config, base, i);
  if (base.numHeads % own.numKvHeads !== 0) {
    const why = `has ${base.numHeads} attention heads, expected a multiple of the`;
    throw unusable(config, `${why} ${own.numKvHeads} key/value heads of layer ${i}`);
  }
  return {
    ...base,
    ...own,
    scale: 1,
    qkNorm: "head",
    values: keysAreValues ? "keys" : "normed",
    window: local ? slidingWindow(config) : undefined,
    rope: local ? SLIDING : FULL,
  };
}

type LayerHeads = Pick<HeadAttention, "numKvHeads" | "headDim">;

/** Heads of layer `i`: by `per_layer_config` (transformers 5.17), or by the keys for full layers of published files. */
function headsOf(
  config: Fields,
  { numKvHeads, headDim }: LayerHeads,
  i: number,
): LayerHeads {
  const heads = { min: 1, max: MAX.heads, fallback: numKvHeads };
  const dims = { min: 8, max: MAX.headDim, multipleOf: 8 };
  const all = nested(config, "per_layer_config");
  if (all) {
    // transformers pads the numbers with zeros to one length.
    const key = Object.keys(all.values).find((padded) => Number(padded) === i) ?? `${i}`;
    const own = nested(all, key) ?? { ...all, values: {} };
    const unknown = Object.keys(own.values).find((key) => !LAYER_KEYS.includes(key));
    if (unknown !== undefined) {
      throw unusable(own, `has ${quote(unknown)}, known are ${LAYER_KEYS.join(", ")}`);
    }
    return {
      numKvHeads: integer(own, "num_key_value_heads", heads),
      headDim: integer(own, "head_dim", { ...dims, fallback: headDim }),
    };
  }
  if (isLocal(config, i)) return { numKvHeads, headDim };
  const fewer = flag(config, "attention_k_eq_v", false);
  return {
    numKvHeads: fewer ? integer(config, "num_global_key_value_heads", heads) : numKvHeads,
    headDim: integer(config, "global_head_dim", dims),
  };
}

const LAYER_KEYS = ["head_dim", "num_key_value_heads"];

/** The last layer is never a sliding one. */
function isLocal(config: Fields, i: number): boolean {
  return i < layerCount(config) - 1 && isSliding(config, i, (i + 1) % 6 > 0);
}

/** The layer whose keys and values layer `i` reads: the last of its kind that has its own. */
function sharedLayer(config: Fields, i: number): number | undefined {
  const count = layerCount(config);
  const sharing = integer(config, "num_kv_shared_layers", { min: 0, max: count, fallback: 0 });
  const first = count - sharing;
  if (i < first) return undefined;
  for (let other = first - 1; other >= 0; other--) {
    if (isLocal(config, other) === isLocal(config, i)) return other;
  }
  throw unusable(
    config,
    `has num_kv_shared_layers ${sharing}: layer ${i} has no layer to share with`,
  );
}

function mlpOf(config: Fields, base: BaseLayer, dense: DenseMlp): MlpSpec {
  if (!flag(config, "enable_moe_block", false)) return dense;
  const mixture = parseMixture(config, base, {
    experts: "num_experts",
    size: "moe_intermediate_size",
    chosen: "top_k_experts",
    anyActivation: true,
  });
  return { ...mixture, parallelMlp: dense };
}

/**
 * One rope per kind of layer that there is: the last layer is full, so only the second may be missing. Its head size is
 * that of the first layer of the kind.
 */
function ropes(config: Fields, headDim: number): readonly Rope[] {
  const layers = Array.from({ length: layerCount(config) }, (_, i) => ({
    sliding: isLocal(config, i),
    headDim: headsOf(config, { numKvHeads: 1, headDim }, i).headDim,
  }));
  return ropesByLayerType(config, layers, ROPES);
}

/** Width of the layers' own embeddings; null and 0 mean none. If config.json has no value, 256 as in transformers. */
function perLayerWidth(config: Fields): number {
  return integer(config, "hidden_size_per_layer_input", {
    min: 0,
    max: MAX_WIDTH,
    multipleOf: 8,
    fallback: 0,
  });
}

function model(config: Fields, hiddenSize: number): Partial<DecoderConfig> {
  if (value(config, "use_bidirectional_attention") === "all") {
    throw unusable(config, 'has use_bidirectional_attention "all", expected causal attention');
  }
  const perLayer = perLayerTable(config);
  return {
    embedScale: Math.fround(Math.sqrt(hiddenSize)),
    logitCap: value(config, "final_logit_softcapping") === undefined
      ? undefined
      : positive(config, "final_logit_softcapping"),
    ...perLayer && { perLayer },
  };
}

/** The table with the layers' own embeddings, undefined if they have none. */
function perLayerTable(config: Fields): DecoderConfig["perLayer"] {
  const width = perLayerWidth(config);
  if (width === 0) return undefined;
  const range = { min: 2, max: MAX_VOCAB };
  const vocabSize = integer(config, "vocab_size_per_layer_input", range);
  if (vocabSize < integer(config, "vocab_size", range)) {
    throw unusable(config, `has vocab_size_per_layer_input ${vocabSize}, expected vocab_size`);
  }
  return { width, vocabSize, scale: Math.fround(Math.sqrt(width)) };
}
