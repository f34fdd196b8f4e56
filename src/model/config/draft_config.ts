/** Reads the config of an EAGLE head from its tensors and, for what they do not show, from its config.json. */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { DecoderConfig, DraftConfig, ModelConfig } from "./types.ts";
import { parseDecoder } from "./architectures.ts";
import { slidingWindow } from "./decoder_config.ts";
import { type DraftLayout, findLayout, namesOutsideLayer } from "./draft_layout.ts";
import {
  type Fields,
  fieldsOf,
  flag,
  integer,
  integers,
  nested,
  quote,
  unusable,
  value,
} from "../files/fields.ts";
import type { LayerConfig } from "./layer_config.ts";

/** NextN layers have no separate files: see nextn_config.ts. */
type HeadAlgorithm = Exclude<DraftConfig["algorithm"], "NEXTN">;

/**
 * Architectures that draft checkpoints name, and the algorithm if the name determines it. The authors'
 * own files name the target's architecture for both algorithms; then the width of `fc` decides.
 */
const ARCHITECTURES: Readonly<Record<string, HeadAlgorithm | undefined>> = {
  LlamaForCausalLM: undefined,
  Qwen2ForCausalLM: undefined,
  Qwen3ForCausalLM: undefined,
  LlamaForCausalLMEagle: "EAGLE",
  Qwen2ForCausalLMEagle: "EAGLE",
  EagleLlamaForCausalLM: "EAGLE",
  EagleSpeculator: "EAGLE",
  LlamaForCausalLMEagle3: "EAGLE3",
  Eagle3LlamaForCausalLM: "EAGLE3",
  Eagle3Speculator: "EAGLE3",
  Eagle3DraftModel: "EAGLE3",
};

/**
 * Kinds of layer. In a draft they differ only in biases and norms of q and k, which the tensors show. SpecForge's head
 * of Phi-4 has the target's type.
 */
const LAYER_TYPES = ["llama", "mistral", "qwen2", "qwen3", "phi3"];

/** Modules of variants that Eyrie does not compute, and the key that switches them on: such drafts are refused. */
const UNKNOWN_MODULES = ["pre_lm_head_layernorm", "post_embedding_layernorm"];
const UNKNOWN_FLAG = "layernorms";

/** Norms before `fc`: the config key that asks for them, and a tensor they have. */
const INPUT_NORMS = [
  { algorithm: "EAGLE3", inputNorms: "whole", key: "norm_before_fc", tensor: "input_norm" },
  { algorithm: "EAGLE3", inputNorms: "each", key: "fc_norm", tensor: "fc_norm.0" },
  { algorithm: "EAGLE", inputNorms: "each", key: "add_para_norm", tensor: "embedding_layernorm" },
] as const;

const MAX_LAYER_ID = 1024;
const MAX_HIDDEN = 2 ** 17;

/**
 * The checked, frozen config of an EAGLE-1/2 or EAGLE-3 head. Whether it fits `target` is checked by
 * `checkFit`.
 * @param target gives the default auxiliary layers; its `tied` decides whether the draft's head may be.
 * @param ropeTheta overrides the config's: training often used 10000 whatever the config says.
 * @throws UsageError if it is no such head, or a variant that Eyrie would compute wrongly.
 */
export function parseDraftConfig(
  checkpoint: Checkpoint,
  target: ModelConfig,
  ropeTheta?: number,
): DraftConfig {
  const config = fieldsOf(checkpoint.name, "config.json", checkpoint.json("config.json"));
  const layout = findLayout(config, checkpoint);
  refuseVariants(config, layout);
  const { named, decoder, targetHiddenSize } = parseDraftSizes(config);
  const sizes = { named, hiddenSize: decoder.hiddenSize, targetHiddenSize };
  const algorithm = parseAlgorithm(config, layout, sizes);
  const eagle3 = algorithm === "EAGLE3";
  const heads = eagle3
    ? parseHead(config, checkpoint, decoder.vocabSize)
    : { ownHead: false, reducedVocab: false, draftVocabSize: decoder.vocabSize };
  const ownEmbedding = outsideLayer(checkpoint, "embed_tokens.weight") !== undefined;
  if (eagle3) refuseTiedHead(config, { ...heads, ownEmbedding, target });
  return Object.freeze({
    algorithm,
    layer: {
      ...decoder,
      layers: [draftLayer(config, decoder, layout)],
      ropes: decoder.ropes.map((rope) => ({ ...rope, theta: ropeTheta ?? rope.theta })),
      tied: false,
      eosTokenIds: [],
    },
    targetHiddenSize,
    ...heads,
    fcBias: layout.has(`${layout.fc}.bias`),
    auxLayers: eagle3 ? parseAuxLayers(config, target.layers.length) : [],
    ownEmbedding,
    normBeforeResidual: eagle3 && parseNormBeforeResidual(config),
    inputNorms: parseInputNorms(config, layout, algorithm),
    normOutput: eagle3 && switched(config, "norm_output") === true,
    prefix: layout.prefix,
    fc: layout.fc,
    layerPrefix: layout.layerPrefix,
  });
}

function outsideLayer(
  { tensors }: Pick<Checkpoint, "tensors">,
  name: string,
): TensorInfo | undefined {
  const [bare, prefixed] = namesOutsideLayer(name);
  return tensors.get(bare) ?? tensors.get(prefixed);
}

/**
 * The draft's one layer; the tensors show whether it norms q and k, and whether they have biases. With norms, the rows
 * that a partial rope turns are reordered at load; a bias is not, so both together are refused.
 */
function draftLayer(
  config: Fields,
  { layers: [layer], ropes }: DecoderConfig,
  layout: DraftLayout,
): LayerConfig {
  const { attention, mlp, norms } = layer as LayerConfig;
  if (attention.kind !== "heads") return layer as LayerConfig;
  const has = (name: string) => layout.has(`${layout.layerPrefix}.self_attn.${name}`);
  const qkNorm = has("q_norm.weight") ? "head" : "none";
  const bias = has("q_proj.bias");
  const width = ropes[attention.rope]?.width ?? attention.headDim;
  const partial = width < attention.headDim;
  if (partial && bias) {
    throw unusable(
      config,
      "has a partial rope together with a bias of q and k, which is not supported",
    );
  }
  const turned = partial && qkNorm === "head" ? { turned: width } : {};
  return { attention: { ...attention, qkNorm, bias, ...turned }, mlp, norms };
}

/** The properties of a draft that config.json states. */
export interface DraftSizes {
  /** The algorithm by the architecture's name; undefined if the name fits both. */
  readonly named: HeadAlgorithm | undefined;
  readonly decoder: DecoderConfig;
  readonly targetHiddenSize: number;
}

/** @throws UsageError naming the field and what is known or allowed. */
export function parseDraftSizes(config: Fields): DraftSizes {
  const architecture = draftArchitecture(config);
  const layer = nested(config, "transformer_layer_config") ?? config;
  const window = draftWindow(layer);
  const decoder = withWindow(parseDecoder(asLlama(layer), architecture), window);
  const targetHiddenSize = integer(config, "target_hidden_size", {
    min: 8,
    max: MAX_HIDDEN,
    multipleOf: 8,
    fallback: decoder.hiddenSize,
  });
  return { named: ARCHITECTURES[architecture], decoder, targetHiddenSize };
}

/** The layer's config, changed so that Llama's reader accepts it. @throws UsageError */
function asLlama(layer: Fields): Fields {
  const type = value(layer, "model_type") ?? "llama";
  if (!LAYER_TYPES.some((known) => known === type)) {
    throw unusable(layer, `has model_type ${quote(type)}, known are ${LAYER_TYPES.join(", ")}`);
  }
  // attention_bias is dropped, because the tensors show it too: see `draftLayer`.
  const values = { ...layer.values, model_type: "llama", attention_bias: false };
  if (!ATTENTION_TYPES.some((type) => type === firstType(layer))) return { ...layer, values };
  // The first of layer_types says which the draft's layer is: see `draftWindow`.
  return { ...layer, values: { ...values, layer_types: undefined, use_sliding_window: false } };
}

const SLIDING = "sliding_attention";
const ATTENTION_TYPES = ["full_attention", SLIDING];

/** The type of the first layer in `layer_types`, which may list as many as the target has. */
function firstType(layer: Fields): unknown {
  const types = value(layer, "layer_types");
  return Array.isArray(types) ? types[0] : undefined;
}

/** How many keys the draft's layer sees; undefined: all. As in vLLM, `layer_types` decides. @throws UsageError */
function draftWindow(layer: Fields): number | undefined {
  if (firstType(layer) !== SLIDING) return undefined;
  const window = slidingWindow(layer);
  if (window !== undefined) return window;
  throw unusable(layer, `has a layer of type ${quote(SLIDING)}, but no sliding_window for it`);
}

function withWindow(decoder: DecoderConfig, window: number | undefined): DecoderConfig {
  const layers = decoder.layers.map((layer) =>
    layer.attention.kind === "heads"
      ? { ...layer, attention: { ...layer.attention, window } }
      : layer
  );
  return { ...decoder, layers };
}

function refuseVariants(config: Fields, layout: DraftLayout): void {
  const both = ["q_proj.bias", "q_norm.weight"].every((name) =>
    layout.has(`${layout.layerPrefix}.self_attn.${name}`)
  );
  if (both) {
    throw unusable({ ...config, where: "it" }, "has both a bias and norms of q and k");
  }
  if (flag(config, UNKNOWN_FLAG, false)) {
    throw unusable(config, `has ${UNKNOWN_FLAG} true, expected false`);
  }
  const module = UNKNOWN_MODULES.find((name) => layout.has(`${name}.weight`));
  if (module !== undefined) {
    throw unusable({ ...config, where: "it" }, `has tensors of ${module}, which is not supported`);
  }
  const eagle = nested(config, "eagle_config");
  if (eagle !== undefined && !flag(eagle, "use_aux_hidden_state", true)) {
    throw unusable(eagle, "has use_aux_hidden_state false, expected true");
  }
}

/** A flag of the config or, in NVIDIA's files, of its eagle_config; undefined if neither has it. */
function switched(config: Fields, key: string): boolean | undefined {
  const eagle = nested(config, "eagle_config");
  const fields = eagle && value(eagle, key) !== undefined ? eagle : config;
  return value(fields, key) === undefined ? undefined : flag(fields, key, false);
}

/** Reads the input norms from the config's key or, if it is absent, from the tensors. */
function parseInputNorms(
  config: Fields,
  layout: DraftLayout,
  algorithm: HeadAlgorithm,
): DraftConfig["inputNorms"] {
  const found = INPUT_NORMS.filter(({ key, tensor }) => {
    const there = layout.has(`${tensor}.weight`);
    const wanted = switched(config, key) ?? there;
    if (wanted === there) return wanted;
    throw unusable(config, `has ${key} ${wanted}, but there ${there ? "is a" : "is no"} ${tensor}`);
  });
  const [norms, ...more] = found;
  if (norms === undefined) return "none";
  if (more.length > 0 || norms.algorithm !== algorithm) {
    const keys = found.map(({ key }) => key).join(" and ");
    throw unusable(config, `has ${keys}, which no ${algorithm} head is known to have`);
  }
  return norms.inputNorms;
}

function draftArchitecture(config: Fields): string {
  const listed = value(config, "architectures");
  const name: unknown = (Array.isArray(listed) ? listed[0] : listed) ?? "LlamaForCausalLM";
  if (typeof name === "string" && Object.hasOwn(ARCHITECTURES, name)) return name;
  const known = Object.keys(ARCHITECTURES).join(", ");
  throw unusable(config, `has draft architecture ${quote(name)}, known are ${known}`);
}

/** EAGLE or EAGLE3, by the width of `fc`, which must not contradict the architecture's name. */
function parseAlgorithm(
  config: Fields,
  layout: DraftLayout,
  { named, ...sizes }: Pick<DraftSizes, "named" | "targetHiddenSize"> & { hiddenSize: number },
): HeadAlgorithm {
  const shape = layout.shape(`${layout.fc}.weight`) ?? [];
  const widths = { EAGLE: 2 * sizes.hiddenSize, EAGLE3: 3 * sizes.targetHiddenSize };
  const found = (["EAGLE", "EAGLE3"] as const).filter((kind) => widths[kind] === shape[1]);
  const algorithm = named === undefined ? found[0] : found.find((kind) => kind === named);
  if (shape.length === 2 && shape[0] === sizes.hiddenSize && algorithm !== undefined) {
    return algorithm;
  }
  const kinds = named === undefined ? ["EAGLE" as const, "EAGLE3" as const] : [named];
  const expected = kinds.map((kind) => `[${sizes.hiddenSize}, ${widths[kind]}] for ${kind}`);
  const why = `has ${layout.fc}.weight of shape ${quote(shape)}, expected ${expected.join(" or ")}`;
  throw unusable({ ...config, where: "it" }, why);
}

/** Which lm_head an EAGLE-3 draft uses, and over which vocabulary. */
function parseHead(
  config: Fields,
  checkpoint: Pick<Checkpoint, "tensors">,
  vocabSize: number,
): Pick<DraftConfig, "ownHead" | "reducedVocab" | "draftVocabSize"> {
  const head = outsideLayer(checkpoint, "lm_head.weight");
  const draftVocabSize = integer(config, "draft_vocab_size", {
    min: 1,
    max: vocabSize,
    fallback: head?.shape[0] ?? vocabSize,
  });
  const ownHead = head !== undefined;
  const reducedVocab = outsideLayer(checkpoint, "d2t") !== undefined;
  if (draftVocabSize < vocabSize && !(ownHead && reducedVocab)) {
    const lacking = ownHead ? "d2t" : "lm_head.weight";
    const why = `has draft_vocab_size ${draftVocabSize} of ${vocabSize}`;
    throw unusable(config, `${why}, but there is no tensor ${lacking}`);
  }
  return { ownHead, reducedVocab, draftVocabSize };
}

/** Refuses a tied head unless it is the target's: it is the draft's embedding, so both must be shared. */
function refuseTiedHead(
  config: Fields,
  draft: { ownHead: boolean; ownEmbedding: boolean; target: ModelConfig },
): void {
  if (draft.ownHead || !flag(config, "tie_word_embeddings", false)) return;
  if (!draft.ownEmbedding && draft.target.tied) return;
  throw unusable(config, "has tie_word_embeddings true, but there is no tensor lm_head.weight");
}

/**
 * Layers whose input residual streams feed `fc`. The speculators format names the layers whose input it is, as Eyrie
 * does. An `eagle_config` that begins with layer 1 names the layers whose OUTPUT it is, one less; other lists there
 * name inputs (SGLang decides so too, sglang#25454: no head reads the input of layer 1). An empty list says nothing,
 * as in vLLM. The engines read the layers in ascending order, whatever the list's order is.
 */
function parseAuxLayers(config: Fields, targetLayers: number): readonly number[] {
  const key = "eagle_aux_hidden_state_layer_ids";
  const eagle = nested(config, "eagle_config");
  const listed = (fields: Fields | undefined) => {
    const ids = fields && integers(fields, key, MAX_LAYER_ID);
    return ids?.length === 0 ? undefined : ids;
  };
  const inside = listed(eagle);
  const ids = inside?.[0] === 1 ? inside.map((id) => id + 1) : inside ?? listed(config);
  if (ids === undefined) return [2, Math.floor(targetLayers / 2), targetLayers - 3];
  if (ids.length !== 3) throw unusable(config, `has ${ids.length} ${key}, expected 3`);
  if (ids.some((id, i) => id < (ids[i - 1] ?? 0))) {
    throw unusable(config, `has ${key} ${quote(ids)}, expected them in ascending order`);
  }
  return ids;
}

function parseNormBeforeResidual(config: Fields): boolean {
  const said = switched(config, "norm_before_residual");
  // For a speculators file without the key vLLM assumes true, speculators itself false.
  if (said === undefined && value(config, "transformer_layer_config") !== undefined) {
    throw unusable(config, "has no norm_before_residual; say true or false in it");
  }
  return said ?? false;
}
