import type { ModelConfig } from "./config.ts";
import { type Fields, flag, integer, nested, positive, quote, unusable, value } from "./fields.ts";
import { MOST_POSITIONS, parseRope } from "./rope_config.ts";

/** The families Eyrie runs, with what transformers assumes where their config.json is silent. */
const FAMILIES: Readonly<Record<ModelConfig["modelType"], Family>> = {
  llama: { architecture: "LlamaForCausalLM", qkNorm: false, maxPositions: 2048 },
  qwen3: { architecture: "Qwen3ForCausalLM", qkNorm: true, maxPositions: 32768 },
};

interface Family {
  readonly architecture: string;
  readonly qkNorm: boolean;
  readonly maxPositions: number;
}

/** What a target and a draft layer have in common: all but the special tokens. */
export type DecoderConfig = Omit<ModelConfig, "bosTokenId" | "eosTokenIds">;

/** Limits far above any published model: a number past them is a mistake or an attack. */
const MOST = { hidden: 2 ** 17, intermediate: 2 ** 20, layers: 1024, heads: 1024, headDim: 1024 };
const MOST_VOCAB = 2 ** 22;

/** bf16 weights are read 8 at a time, so every row a kernel reduces over is whole eights. */
const ROW_STEP = 8;

/**
 * The decoder that `config` describes.
 * @param architecture already recognised by the caller, for display.
 * @throws UsageError for sizes that cannot be, and for what would run wrong.
 */
export function parseDecoder(config: Fields, architecture: string): DecoderConfig {
  const modelType = parseModelType(config);
  const family = FAMILIES[modelType];
  refuseUnsupported(config);
  const heads = parseHeads(config);
  return {
    modelType,
    architecture,
    ...heads,
    intermediateSize: size(config, "intermediate_size", MOST.intermediate),
    numLayers: integer(config, "num_hidden_layers", { least: 1, most: MOST.layers }),
    vocabSize: integer(config, "vocab_size", { least: 2, most: MOST_VOCAB }),
    maxPositions: integer(config, "max_position_embeddings", {
      least: 1,
      most: MOST_POSITIONS,
      fallback: family.maxPositions,
    }),
    rmsNormEps: positive(config, "rms_norm_eps", 1e-6),
    rope: parseRope(config),
    tied: flag(config, "tie_word_embeddings", false),
    qkNorm: family.qkNorm,
  };
}

/**
 * The first entry of `architectures`, or what `model_type` implies.
 * @throws UsageError naming the known ones.
 */
export function parseArchitecture(config: Fields): string {
  const listed = value(config, "architectures");
  const first: unknown = Array.isArray(listed) ? listed[0] : listed;
  const name = first ?? FAMILIES[parseModelType(config)].architecture;
  const family = Object.values(FAMILIES).find(({ architecture }) => architecture === name);
  if (family === undefined) {
    const known = Object.values(FAMILIES).map(({ architecture }) => architecture).join(", ");
    throw unusable(config, `has architecture ${quote(name)}, known are ${known}`);
  }
  if (family !== FAMILIES[parseModelType(config)]) {
    const type = quote(value(config, "model_type"));
    throw unusable(config, `has architecture ${quote(name)} but model_type ${type}`);
  }
  return family.architecture;
}

function parseModelType(config: Fields): ModelConfig["modelType"] {
  const type = value(config, "model_type");
  if (type === "llama" || type === "qwen3") return type;
  const known = Object.keys(FAMILIES).join(", ");
  throw unusable(config, `has model_type ${quote(type ?? null)}, known are ${known}`);
}

function parseHeads(
  config: Fields,
): Pick<DecoderConfig, "hiddenSize" | "numHeads" | "numKvHeads" | "headDim"> {
  const hiddenSize = size(config, "hidden_size", MOST.hidden);
  const numHeads = integer(config, "num_attention_heads", { least: 1, most: MOST.heads });
  const numKvHeads = integer(config, "num_key_value_heads", {
    least: 1,
    most: MOST.heads,
    fallback: numHeads,
  });
  if (numHeads % numKvHeads !== 0) {
    const why = `has ${numHeads} attention heads, expected a multiple of the ${numKvHeads}`;
    throw unusable(config, `${why} key/value heads`);
  }
  const headDim = integer(config, "head_dim", {
    least: 2,
    most: MOST.headDim,
    multipleOf: 2,
    fallback: hiddenSize / numHeads,
  });
  if (numHeads * headDim % ROW_STEP !== 0) {
    const why = `has ${numHeads} heads of ${headDim}, expected a product that is a multiple of`;
    throw unusable(config, `${why} ${ROW_STEP}`);
  }
  return { hiddenSize, numHeads, numKvHeads, headDim };
}

function size(config: Fields, key: string, most: number): number {
  return integer(config, key, { least: ROW_STEP, most, multipleOf: ROW_STEP });
}

/** What the kernels do not compute must not pass: the output would be wrong without a word. */
function refuseUnsupported(config: Fields): void {
  for (const key of ["attention_bias", "mlp_bias", "use_sliding_window"]) {
    if (flag(config, key, false)) throw unusable(config, `has ${key} true, expected false`);
  }
  const activation = value(config, "hidden_act") ?? "silu";
  if (activation !== "silu") {
    throw unusable(config, `has hidden_act ${quote(activation)}, expected "silu"`);
  }
  const layers = value(config, "layer_types");
  const other = Array.isArray(layers) && layers.find((kind) => kind !== "full_attention");
  if (other) throw unusable(config, `has layers of type ${quote(other)}, known is full_attention`);
  if (nested(config, "quantization_config") !== undefined) {
    throw unusable(config, "says that the weights are quantized, expected F32, F16 or BF16");
  }
}
