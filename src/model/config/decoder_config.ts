/** Reads what decoders have in common from a config.json; families add what is different. */
import type { DecoderConfig, Family } from "./types.ts";
import type { Activation } from "../../../kernels/lib/gate.ts";
import { type Fields, flag, integer, positive, quote, unusable, value } from "../files/fields.ts";
import {
  type DenseMlp,
  type HeadAttention,
  isRecurrent,
  type LayerConfig,
} from "./layer_config.ts";
import { oneRope, parseRope, positionLimit, type Rope, turnWholeHeads } from "./rope_config.ts";
import { LLAMA_NAMES, type TensorNames, WRAPPED } from "./tensor_names.ts";

const DEFAULTS = {
  max_position_embeddings: 2048,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: false,
  hidden_act: "silu",
};

/** Limits far above any published model: a number past them is a mistake or an attack. */
export const MAX: Readonly<
  Record<"hidden" | "intermediate" | "layers" | "heads" | "headDim", number>
> = {
  hidden: 2 ** 17,
  intermediate: 2 ** 20,
  layers: 1024,
  heads: 1024,
  headDim: 1024,
};
/** The same for tokens; kernels draw what belongs to no token by keys from here on (kernels/sample/relax.wgsl). */
export const MAX_VOCAB: number = 2 ** 22;

/** Kernels read weights, keys and values 8 at a time, so every row they reduce over is a multiple of 8 wide. */
const ROW_STEP = 8;

/** config.json `hidden_act` and the like. */
const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  silu: "silu",
  gelu_pytorch_tanh: "gelu_tanh",
};

/**
 * The decoder that `config` describes.
 * @param architecture for display.
 * @throws UsageError for impossible sizes, and for settings that Eyrie would compute wrongly.
 */
export function readDecoder(family: Family, file: Fields, architecture: string): DecoderConfig {
  const config = withDefaults(family, file);
  refuseUnsupported(config, family.biases ?? []);
  const hiddenSize = size(config, "hidden_size", MAX.hidden);
  const base = { attention: parseHeads(config, hiddenSize), mlp: parseMlp(config, family) };
  const { headDim } = base.attention;
  const layer = family.layer ?? ((_, same): LayerConfig => ({ ...same, norms: "before" }));
  const numLayers = layerCount(config);
  const layers = Array.from({ length: numLayers }, (_, i) => layer(config, base, i));
  checkWidths(config, layers);
  checkLayerTypes(config, layers, family);
  if (layers.every(({ attention }) => isRecurrent(attention))) {
    throw unusable(config, "has no layer with attention, expected at least one");
  }
  const ropes = family.ropes?.(config, headDim) ?? [parseRope(config, headDim)];
  refuseUnplanned(config, layers, ropes);
  return {
    modelType: family.modelType,
    architecture,
    hiddenSize,
    layers,
    vocabSize: integer(config, "vocab_size", { min: 2, max: MAX_VOCAB }),
    maxPositions: positionLimit(config, ropes[0]),
    rmsNormEps: positive(config, "rms_norm_eps"),
    normOffset: 0,
    embedScale: 1,
    logitCap: undefined,
    logitScale: 1,
    residualScale: 1,
    ropes,
    tied: flag(config, "tie_word_embeddings", false),
    names: namesOf(family),
    ...family.model?.(config, hiddenSize),
  };
}

/** Returns whether layer `i` has a window: by `layer_types` (transformers 5), or else by `fallback`. */
export function isSliding(config: Fields, i: number, fallback: boolean): boolean {
  const types = value(config, "layer_types");
  return types === undefined ? fallback : Array.isArray(types) && types[i] === SLIDING;
}

/** `sliding_window` in tokens; undefined where null or absent. @throws UsageError */
export function slidingWindow(config: Fields): number | undefined {
  if (value(config, "sliding_window") === undefined) return undefined;
  return integer(config, "sliding_window", { min: 1, max: 2 ** 31 });
}

const SLIDING = "sliding_attention";
/** Kinds of layers without keys and values, by their names in `layer_types`. */
const RECURRENT: Readonly<Record<string, string>> = { conv: "conv", linear_attention: "delta" };
/** What transformers 4 called some of them. */
const OLD_TYPES: ReadonlyMap<unknown, string> = new Map([
  ["attention", "full_attention"],
  ["mamba", "linear_attention"],
]);
const LAYER_TYPES = ["full_attention", SLIDING, ...Object.keys(RECURRENT)];

/** Text-only exports of a multimodal model keep its prefixes, so both kinds of names are accepted. */
function namesOf({ names = LLAMA_NAMES, wrappers }: Family): TensorNames {
  return wrappers === undefined ? names : { ...names, ...WRAPPED };
}

/** The file's fields over the family's defaults; renamed keys win, and of several ropes one is left. */
function withDefaults(family: Family, file: Fields): Fields {
  const renamed = Object.entries(family.renamed ?? {})
    .flatMap(([key, own]) => value(file, own) === undefined ? [] : [[key, value(file, own)]]);
  const values = { ...DEFAULTS, ...family.defaults, ...file.values };
  const fields = { ...file, values: { ...values, ...Object.fromEntries(renamed) } };
  const chosen = oneRope(fields);
  return family.partialRope ? chosen : turnWholeHeads(chosen);
}

function parseHeads(config: Fields, hiddenSize: number): HeadAttention {
  const numHeads = integer(config, "num_attention_heads", { min: 1, max: MAX.heads });
  const numKvHeads = integer(config, "num_key_value_heads", {
    min: 1,
    max: MAX.heads,
    fallback: numHeads,
  });
  if (numHeads % numKvHeads !== 0) {
    const why = `has ${numHeads} attention heads, expected a multiple of the ${numKvHeads}`;
    throw unusable(config, `${why} key/value heads`);
  }
  const headDim = integer(config, "head_dim", {
    min: ROW_STEP,
    max: MAX.headDim,
    multipleOf: ROW_STEP,
    fallback: hiddenSize / numHeads,
  });
  const plain = {
    cap: undefined,
    window: undefined,
    bias: false,
    qkNorm: "none",
    rope: 0,
  } as const;
  return { kind: "heads", numHeads, numKvHeads, headDim, scale: 1 / Math.sqrt(headDim), ...plain };
}

function parseMlp(config: Fields, { activation = "hidden_act" }: Family): DenseMlp {
  return {
    kind: "dense",
    // Families may change it (LFM2), or have no layer with it: `checkWidths` checks the layers' own.
    intermediateSize: integer(config, "intermediate_size", { min: 1, max: MAX.intermediate }),
    activation: parseActivation(config, activation),
  };
}

/** Checks the widths of dense MLPs as the layers have them. @throws UsageError if kernels cannot handle one. */
function checkWidths(config: Fields, layers: readonly LayerConfig[]): void {
  const widths = layers.flatMap(({ mlp }) => {
    const dense = mlp.kind === "dense" ? [mlp] : [mlp.shared, mlp.parallelMlp];
    return dense.flatMap((each) => each?.intermediateSize ?? []);
  });
  for (const width of new Set(widths)) {
    if (width % ROW_STEP === 0 && width > 0 && width <= MAX.intermediate) continue;
    const said = width === value(config, "intermediate_size");
    const what = said ? `intermediate_size ${width}` : `MLPs that are ${width} wide`;
    const allowed = `expected a multiple of ${ROW_STEP} from ${ROW_STEP} to ${MAX.intermediate}`;
    throw unusable(config, `has ${what}, ${allowed}`);
  }
}

/** The activation of gated MLPs. @throws UsageError naming the known ones. */
function parseActivation(config: Fields, key: string): Activation {
  const name = value(config, key);
  if (typeof name === "string" && Object.hasOwn(ACTIVATIONS, name)) {
    return ACTIVATIONS[name] as Activation;
  }
  const known = Object.keys(ACTIVATIONS).map(quote).join(", ");
  throw unusable(config, `has ${key} ${quote(name ?? null)}, known are ${known}`);
}

/** The number of layers. @throws UsageError for one that no model has. */
export function layerCount(config: Fields): number {
  return integer(config, "num_hidden_layers", { min: 1, max: MAX.layers });
}

/** Reads a row width. @throws UsageError if kernels cannot handle it. */
export function size(config: Fields, key: string, max: number): number {
  return integer(config, key, { min: ROW_STEP, max, multipleOf: ROW_STEP });
}

/** Refuses settings that the kernels do not implement: the output would be silently wrong. */
function refuseUnsupported(config: Fields, known: readonly string[]): void {
  for (const key of ["attention_bias", "attention_out_bias", "mlp_bias"]) {
    if (!known.includes(key) && flag(config, key, false)) {
      throw unusable(config, `has ${key} true, expected false`);
    }
  }
}

/**
 * Refuses biases and norms of q and k with a partial rope, because they are not reordered as its rows are, and
 * interleaved pairs with one. Accepts layers whose `turned` is the rope's width: their rows and norms are reordered.
 */
function refuseUnplanned(
  config: Fields,
  layers: readonly LayerConfig[],
  ropes: readonly Rope[],
): void {
  for (const { attention } of layers) {
    if (attention.kind !== "heads") continue;
    const { headDim, rope, bias, qkNorm, turned = headDim, interleaved } = attention;
    if (ropes[rope]?.width === turned || !bias && qkNorm === "none" && !interleaved) continue;
    throw unusable(
      config,
      "has a partial rope together with a bias, norms of q and k or interleaved pairs, which is not supported",
    );
  }
}

/** Checks that the layers, as they were read, do what `layer_types` says. */
function checkLayerTypes(
  config: Fields,
  layers: readonly LayerConfig[],
  { fullLastLayer = false }: Family,
): void {
  const types = value(config, "layer_types");
  if (types === undefined) return;
  if (!Array.isArray(types) || types.length !== layers.length) {
    const why = `has layer_types ${quote(types)}, expected one for each of its ${layers.length}`;
    throw unusable(config, `${why} layers`);
  }
  for (const [i, given] of types.entries()) {
    const type = OLD_TYPES.get(given) ?? given;
    if (!LAYER_TYPES.includes(type)) {
      const known = LAYER_TYPES.join(", ");
      throw unusable(config, `has a layer of type ${quote(type)}, known are ${known}`);
    }
    const { attention } = layers[i] as LayerConfig;
    if (RECURRENT[type] !== (isRecurrent(attention) ? attention.kind : undefined)) {
      throw unusable(
        config,
        `has a layer of type ${quote(given)}, which those of this model are not`,
      );
    }
    const forced = fullLastLayer && i === layers.length - 1;
    if (type === SLIDING && attention.window === undefined && !forced) {
      throw unusable(config, `has a layer of type ${quote(type)}, but no sliding_window for it`);
    }
  }
}
