import { UsageError } from "../../errors.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { DTYPE_BYTES, type GroupedDType, type TensorInfo } from "../files/safetensors.ts";
import { namesOutsideLayer } from "../config/draft_layout.ts";
import type { AnyDraftConfig, DraftConfig, ModelConfig } from "../config/types.ts";
import { quote } from "../files/fields.ts";
import type { LayerConfig } from "../config/layer_config.ts";
import {
  attentionTensors,
  layerTensors,
  matrix,
  mlpTensors,
  type Place,
  table,
  type TensorKind,
  type TensorSpec,
  vector,
} from "./layer_tensors.ts";

export type { TensorKind, TensorSpec };

/** Types of the matrices of quantized checkpoints. */
const GROUPED: readonly GroupedDType[] = [
  "GROUPED_U4",
  "GROUPED_I8",
  "GROUPED_F8",
  "GROUPED_MXFP4",
  "GROUPED_NVFP4",
  "GROUPED_Q8",
  "GROUPED_Q4",
];

/** Dtypes each kind may have. */
const DTYPES: Readonly<Record<TensorKind, readonly string[]>> = {
  matrix: ["F32", "F16", "BF16", ...GROUPED],
  table: ["F32", "F16", "BF16", ...GROUPED], // GROUPED becomes float32 on the GPU
  vector: ["F32", "F16", "BF16"],
  ids: ["I64", "I32"],
};

/**
 * Tensors that checkpoints carry and no forward needs: the inverse of d2t, rope frequencies (they
 * are computed), and the lm_head of a tied model, which is the embedding once more.
 */
const IGNORABLE = /(^|\.)(t2d|rotary_emb\.inv_freq|lm_head\.weight)$/;

/** Matches tensors that process images or audio, by the names of the modules. */
const MULTIMODAL: RegExp =
  /^(model\.)?[a-z_]*(vision|visual|image|audio|multi_modal|multimodal|mm_projector|patch_merger)[a-z_]*(\.|$)/;

/** The tensors of a decoder, in the order of the forward pass. */
export function targetTensors(config: ModelConfig): TensorSpec[] {
  const { vocabSize, hiddenSize, names } = config;
  const layers = config.layers.flatMap((spec, i) =>
    layerTensors(spec, { names, roles: `layers.${i}`, prefix: `layers.${i}`, hiddenSize })
  );
  const prefixed = [
    table("embed", "embed_tokens.weight", [vocabSize, hiddenSize]),
    ...perLayerTensors(config),
    ...layers,
    vector("norm", `${names.norm ?? "norm"}.weight`, hiddenSize),
  ];
  return [
    ...prefixed.map((spec) => withPrefixes(spec, names.prefixes)),
    ...config.tied ? [] : [
      withPrefixes(
        matrix("head", "lm_head.weight", [vocabSize, hiddenSize]),
        names.headPrefixes ?? [""],
      ),
    ],
  ];
}

/** The layers' own embeddings, one table for all layers, and the projection and norm that they are combined with. */
function perLayerTensors({ perLayer, layers, hiddenSize }: ModelConfig): TensorSpec[] {
  if (!perLayer) return [];
  const { width, vocabSize } = perLayer;
  const all = layers.length * width;
  const embed = table("perLayer.embed", "embed_tokens_per_layer.weight", [vocabSize, all]);
  return [
    { ...embed, share: 0 },
    matrix("perLayer.projection", "per_layer_model_projection.weight", [all, hiddenSize]),
    vector("perLayer.norm", "per_layer_projection_norm.weight", width),
  ];
}

function withPrefixes(spec: TensorSpec, prefixes: readonly string[]): TensorSpec {
  const prefixed = (name: string) => prefixes.map((prefix) => prefix + name);
  const [name = spec.name, ...aliases] = prefixed(spec.name);
  const { stack } = spec;
  return {
    ...spec,
    name,
    ...aliases.length > 0 ? { aliases } : {},
    ...stack ? { stack: { ...stack, names: stack.names.flatMap(prefixed) } } : {},
  };
}

/** EAGLE heads have a layer that projects the target's hidden states; no target has one. */
export function isEagleHead({ tensors }: Pick<Checkpoint, "tensors">): boolean {
  return ["fc.weight", "model.fc.weight", "fusion_fc.weight"].some((name) => tensors.has(name));
}

/** @throws UsageError for a head where a whole model is needed. */
export function refuseHead(checkpoint: Pick<Checkpoint, "name" | "tensors">): void {
  if (!isEagleHead(checkpoint)) return;
  throw new UsageError(
    `Cannot use ${
      quote(checkpoint.name)
    } as a model: it is an EAGLE head, a draft; give it with --draft`,
  );
}

/** The tensors of a draft, in the order of the forward pass; the layer of an EAGLE head is `layers.0`. */
export function draftTensors(config: AnyDraftConfig): TensorSpec[] {
  if (config.algorithm === "STANDALONE") return targetTensors(config.layer);
  const { layer, prefix, draftVocabSize } = config;
  const { hiddenSize, vocabSize } = layer;
  const eagle3 = config.algorithm === "EAGLE3";
  const fcWidth = eagle3 ? 3 * config.targetHiddenSize : 2 * hiddenSize;
  const at: Place = {
    names: layer.names,
    roles: "layers.0",
    prefix: prefix + config.layerPrefix,
    hiddenSize,
  };
  const [spec] = layer.layers as [LayerConfig];
  const embed = outsideLayer(table("embed", "embed_tokens.weight", [vocabSize, hiddenSize]));
  const inputNorm = vector("layers.0.inputNorm", `${at.prefix}.input_layernorm.weight`, hiddenSize);
  const norms = {
    EAGLE: [],
    EAGLE3: [
      inputNorm,
      vector("layers.0.hiddenNorm", `${at.prefix}.hidden_norm.weight`, hiddenSize),
    ],
    NEXTN: [inputNorm],
  };
  const final = {
    EAGLE: [],
    EAGLE3: [vector("norm", `${prefix}norm.weight`, hiddenSize)],
    NEXTN: config.nextnNorms
      ? [vector("norm", `${prefix}${config.nextnNorms.output}.weight`, hiddenSize)]
      : [],
  };
  return [
    ...config.ownEmbedding ? [embed] : [],
    ...inputNormTensors(config),
    matrix("fc", `${prefix}${config.fc}.weight`, [hiddenSize, fcWidth]),
    ...config.fcBias ? [vector("fcBias", `${prefix}${config.fc}.bias`, hiddenSize)] : [],
    ...norms[config.algorithm],
    // EAGLE-3 attends over concat(embedding, hidden), both normed: twice as wide.
    ...attentionTensors(spec, at, eagle3 ? 2 * hiddenSize : hiddenSize),
    ...mlpTensors(spec, at),
    ...final[config.algorithm],
    ...config.ownHead
      ? [outsideLayer(matrix("head", "lm_head.weight", [draftVocabSize, hiddenSize]))]
      : [],
    ...config.reducedVocab
      ? [outsideLayer({ role: "d2t", name: "d2t", shape: [draftVocabSize], kind: "ids" })]
      : [],
  ];
}

/** A tensor outside a draft's layer, by all its names. */
function outsideLayer(spec: TensorSpec): TensorSpec {
  return { ...spec, aliases: namesOutsideLayer(spec.name).slice(1) };
}

/** The norms before `fc`, in the order of its columns. */
function inputNormTensors(config: DraftConfig): TensorSpec[] {
  const { prefix, targetHiddenSize: width, layer: { hiddenSize }, inputNorms } = config;
  const norm = (i: number, module: string, size: number) =>
    vector(`inputNorms.${i}`, `${prefix}${module}.weight`, size);
  if (inputNorms === "none") return [];
  if (inputNorms === "whole") return [norm(0, "input_norm", 3 * width)];
  switch (config.algorithm) {
    case "EAGLE3":
      return [0, 1, 2].map((i) => norm(i, `fc_norm.${i}`, width));
    case "NEXTN":
      return config.nextnNorms?.inputs.map((name, i) => norm(i, name, hiddenSize)) ?? [];
    case "EAGLE":
      return ["embedding_layernorm", "hidden_states_layernorm"].map((name, i) =>
        norm(i, name, hiddenSize)
      );
  }
}

/**
 * `checkTensors` for a target. It does not warn of layers after the last one, which are a draft's (NEXTN), nor of keys
 * and values of layers that read those of other layers: files contain them all the same.
 */
export function checkTarget(checkpoint: Checkpoint, config: ModelConfig): string[] {
  const { layers, nextnLayers = 0, mtp = false } = config;
  const nextn = Array.from({ length: nextnLayers }, (_, i) => layers.length + i);
  const sharing = layers.flatMap(({ attention }, i) =>
    attention.kind === "heads" && attention.sharedKv !== undefined ? [i] : []
  );
  const ignorable = [
    IGNORABLE.source,
    ...nextn.length > 0 ? [`^model\\.layers\\.(${nextn.join("|")})\\.`] : [],
    ...mtp ? ["^mtp\\."] : [],
    ...sharing.length > 0
      ? [`(^|\\.)layers\\.(${sharing.join("|")})\\.self_attn\\.[kv]_(proj|norm)\\.`]
      : [],
  ];
  return checkTensors(checkpoint, targetTensors(config), new RegExp(ignorable.join("|")));
}

/** `checkTensors` for a draft. In a NEXTN checkpoint the other tensors are the target's and cause no warning. */
export function checkDraft(checkpoint: Checkpoint, config: AnyDraftConfig): string[] {
  if (config.algorithm === "STANDALONE") return checkTarget(checkpoint, config.layer);
  const { algorithm, prefix, layerPrefix } = config;
  const layer = `${prefix}${layerPrefix}`;
  if (
    algorithm === "NEXTN" && !checkpoint.tensors.keys().some((name) => name.startsWith(`${layer}.`))
  ) {
    throw new UsageError(
      `Cannot use ${quote(checkpoint.name)}: it has no tensors of ${layer}, the layer that NEXTN ` +
        "drafts with; --donor MODEL reads them from another checkpoint of the model",
    );
  }
  const specs = draftTensors(config);
  const warnings = checkTensors(checkpoint, specs, algorithm === "NEXTN" ? /^/ : IGNORABLE);
  refuseUnread(checkpoint, specs, config);
  return [
    ...warnings,
    ...laterLayers(checkpoint, layer),
    ...vocabularyWarning(checkpoint, specs),
  ];
}

/**
 * Copies of the target's tensors, and what no forward needs: scales of quantized keys and values, and the biases of
 * zeros that `checkTensors` has let pass.
 */
const UNREAD: RegExp =
  /(^|\.)(verifier_\w+|embed_tokens|shared_head\.head|rotary_emb)\.\w+$|\.(weight|input|output|[qkv]|kv)_(scale|scale_inv|zero_point)$|\.bias$/;

/** Tensors of a draft by their names: in a NEXTN checkpoint the others are the target's. */
const OF_NEXTN: RegExp = /^mtp\.(?!layers\.[1-9]).*norm/;
const OF_HEAD: RegExp = /^(model\.)?(midlayer|layers|transformer)|norm[\w.]*$|(^|\.)mask_hidden$/;

/**
 * Refuses drafts with tensors that the forward would leave out although they change what it computes: others in the
 * layer (norms, gates, sinks), norms outside of it, and the hidden row of masks (P-EAGLE). Few of such a draft's tokens
 * would be accepted, which no text shows.
 */
function refuseUnread(
  checkpoint: Checkpoint,
  specs: readonly TensorSpec[],
  { algorithm, prefix, layerPrefix }: DraftConfig,
): void {
  const wanted = new Set(specs.flatMap(namesOf));
  const layer = `${prefix}${layerPrefix}.`;
  const others = algorithm === "NEXTN" ? OF_NEXTN : OF_HEAD;
  const unread = checkpoint.tensors.values().find(({ name }) =>
    (name.startsWith(layer) || others.test(name)) && !wanted.has(name) && !UNREAD.test(name)
  );
  if (!unread) return;
  throw mismatch(checkpoint, unread, "belongs to a kind of draft that is not supported");
}

/** A warning if there are several NextN layers: each is trained for one step. */
function laterLayers({ name, tensors }: Checkpoint, layer: string): string[] {
  const next = layer.replace(/\d+$/, (number) => `${Number(number) + 1}`);
  if (next === layer || !tensors.keys().some((each) => each.startsWith(`${next}.`))) return [];
  return [`${name}: of several NextN layers only the first one drafts, so later drafts are worse`];
}

/**
 * A warning if d2t and t2d, which marks the same tokens, disagree: then most drafts are other tokens than the head
 * means. @throws UsageError if d2t has token ids instead of offsets.
 */
function vocabularyWarning(checkpoint: Checkpoint, specs: readonly TensorSpec[]): string[] {
  const spec = specs.find(({ role }) => role === "d2t");
  const d2t = spec && findTensor(checkpoint, spec);
  const [t2d] = namesOutsideLayer("t2d").flatMap((name) => checkpoint.tensors.get(name) ?? []);
  if (!d2t || !t2d || !["BOOL", "U8"].includes(t2d.dtypeName)) return [];
  const marks = new Uint8Array(t2d.size);
  checkpoint.read(t2d, 0, marks);
  const count = marks.reduce((sum, mark) => sum + Number(mark !== 0), 0);
  // Some exports have a t2d that was never filled in.
  if (count === 0) return [];
  const numbers = readIds(checkpoint, d2t);
  const unmarked = numbers.filter((number, i) => !marks[i + number]).length;
  if (unmarked === 0 && count === numbers.length) return [];
  const where = `${checkpoint.name}/${d2t.file}`;
  if (unmarked > 0 && numbers.every((id) => marks[id])) {
    const why = "holds ids of the target's tokens, expected their offsets from the draft's ids";
    throw mismatch(checkpoint, d2t, why);
  }
  return [
    `${where}: d2t names ${numbers.length} tokens, of which ${unmarked} are not in t2d, which has ` +
    `${count}: few drafts will be accepted`,
  ];
}

/** The numbers of a tensor of dtype I64 or I32. */
export function readIds(
  checkpoint: Pick<Checkpoint, "read">,
  tensor: TensorInfo,
): number[] {
  const bytes = new Uint8Array(tensor.size);
  checkpoint.read(tensor, 0, bytes);
  const view = new DataView(bytes.buffer);
  const width = tensor.dtype === "I64" ? 8 : 4;
  return Array.from(
    { length: tensor.size / width },
    (_, i) => width === 8 ? Number(view.getBigInt64(i * 8, true)) : view.getInt32(i * 4, true),
  );
}

function namesOf({ name, aliases = [], stack }: TensorSpec): readonly string[] {
  return [name, ...aliases, ...stack?.names ?? []];
}

/**
 * Checks that the checkpoint holds what `specs` ask for.
 * @param ignorable names of extra tensors that deserve no warning.
 * @returns the checkpoint's warnings, and a warning if there are other tensors, which are not read.
 * @throws UsageError naming file and tensor when one is missing, of another shape or unusable
 * dtype, or comes with a part (a bias, a scale) that the forward would leave out.
 */
export function checkTensors(
  checkpoint: Checkpoint,
  specs: readonly TensorSpec[],
  ignorable: RegExp = IGNORABLE,
): string[] {
  for (const spec of specs) checkTensor(checkpoint, spec);
  const names = specs.flatMap(namesOf);
  const wanted = new Set(names);
  const modules = new Set(names.map((name) => name.replace(/\.(weight|bias)$/, "")));
  const extra = [...checkpoint.tensors.values()].filter(({ name }) => !wanted.has(name));
  for (const tensor of extra) {
    const module = tensor.name.slice(0, tensor.name.lastIndexOf("."));
    if (!modules.has(module) || isZeroBias(checkpoint, tensor)) continue;
    throw mismatch(checkpoint, tensor, "is part of a layer that is computed without it");
  }
  const other = extra.filter((tensor) =>
    !ignorable.test(tensor.name) && !isZeroBias(checkpoint, tensor)
  );
  const { multimodal = [], unused = [] } = Object.groupBy(
    other,
    ({ name }) => MULTIMODAL.test(name) ? "multimodal" : "unused",
  );
  return [
    ...checkpoint.warnings ?? [],
    ...multimodalWarning(checkpoint.name, multimodal.length),
    ...unusedWarning(checkpoint.name, unused),
  ];
}

function multimodalWarning(checkpoint: string, count: number): string[] {
  if (count === 0) return [];
  const what = count === 1
    ? "1 tensor for images or audio is"
    : `${count} tensors for images or audio are`;
  return [`${checkpoint}: ${what} not used, only text is read`];
}

function unusedWarning(checkpoint: string, unused: readonly TensorInfo[]): string[] {
  const [first, ...others] = unused;
  if (first === undefined) return [];
  const path = `${checkpoint}/${first.file}`;
  return others.length === 0
    ? [`${path}: tensor ${quote(first.name)} is not used`]
    : [`${path}: tensor ${quote(first.name)} and ${others.length} more are not used`];
}

/** Whether a tensor is a bias of zeros: AutoGPTQ gives every module one, even if the model has none. */
function isZeroBias(checkpoint: Checkpoint, { name, ...tensor }: TensorInfo): boolean {
  const weight = checkpoint.tensors.get(name.replace(/\.bias$/, ".weight"));
  if (!name.endsWith(".bias") || weight === undefined || !isGrouped(weight.dtype)) return false;
  // -0, where only the sign bit is set, counts as zero.
  const bytes = new Uint8Array(tensor.size);
  checkpoint.read({ name, ...tensor }, 0, bytes);
  const step = DTYPE_BYTES[tensor.dtypeName] ?? 1;
  return bytes.every((byte, i) => (i % step === step - 1 ? byte & 0x7f : byte) === 0);
}

/**
 * Finds the tensor that a spec asks for, as the checkpoint stores it; for rows of a larger tensor only those
 * rows. Undefined if it is missing.
 */
export function findTensor(
  checkpoint: Pick<Checkpoint, "tensors">,
  spec: TensorSpec,
): TensorInfo | undefined {
  const stored = findStored(checkpoint, spec);
  if (stored?.part === undefined) return stored?.tensor;
  const { tensor, part } = stored;
  const { shape } = spec;
  const rowBytes = tensor.size / part.of;
  const [rows = 0] = shape;
  return { ...tensor, shape, begin: tensor.begin + part.first * rowBytes, size: rows * rowBytes };
}

/** Finds the stored tensor with a spec's rows, the shape the tensor must have, and which of its rows are meant. */
function findStored(
  { tensors }: Pick<Checkpoint, "tensors">,
  { name, aliases = [], shape, part, stack }: TensorSpec,
): { tensor: TensorInfo; wanted: readonly number[]; part: TensorSpec["part"] } | undefined {
  const first = (names: readonly string[]) => names.flatMap((each) => tensors.get(each) ?? [])[0];
  const own = first([name, ...aliases]);
  if (own) return { tensor: own, wanted: part ? [part.of, ...shape.slice(1)] : shape, part };
  const tensor = stack && first(stack.names);
  if (!stack || !tensor) return undefined;
  const [count = 0, rows = 0, cols = 0] = stack.shape;
  const of = count * rows;
  // In a quantized tensor the experts are rows of one two-dimensional matrix.
  const wanted = isGrouped(tensor.dtype) ? [of, cols] : stack.shape;
  return { tensor, wanted, part: { first: stack.first, of } };
}

function checkTensor(checkpoint: Checkpoint, spec: TensorSpec): void {
  const stored = findStored(checkpoint, spec);
  if (stored === undefined) {
    const why = `tensor ${quote(spec.name)} is missing`;
    throw new UsageError(`Cannot use ${quote(checkpoint.name)}: ${why}`);
  }
  const { tensor, wanted } = stored;
  const { shape } = tensor;
  if (shape.length !== wanted.length || shape.some((size, i) => size !== wanted[i])) {
    const expected = `expected ${quote(wanted)}`;
    throw mismatch(checkpoint, tensor, `has shape ${quote(shape)}, ${expected} by config.json`);
  }
  const allowed = DTYPES[spec.kind];
  if (!allowed.includes(tensor.dtype)) {
    const expected = `expected ${allowed.filter((dtype) => !isGrouped(dtype)).join(", ")}`;
    throw mismatch(checkpoint, tensor, `has dtype ${quote(tensor.dtypeName)}, ${expected}`);
  }
}

/** Whether a matrix is quantized in its checkpoint. */
export function isGrouped(dtype: string): boolean {
  return GROUPED.some((grouped) => grouped === dtype);
}

function mismatch(checkpoint: Checkpoint, tensor: TensorInfo, why: string): UsageError {
  const path = `${checkpoint.name}/${tensor.file}`;
  return new UsageError(`Cannot use ${quote(path)}: tensor ${quote(tensor.name)} ${why}`);
}
