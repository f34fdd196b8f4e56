import { UsageError } from "../errors.ts";
import type { Checkpoint, TensorInfo } from "./checkpoint.ts";
import type { DraftConfig, ModelConfig } from "./config.ts";
import { quote } from "./fields.ts";
import type { LayerSpec } from "./layer_spec.ts";
import type { LayerRole, TensorNames } from "./tensor_names.ts";

/** One tensor that a model needs. */
export interface TensorSpec {
  /** What it is in the forward pass: `embed`, `layers.3.q`, `layers.3.inputNorm`, `d2t`, ... */
  readonly role: string;
  /** Its name in the checkpoint. */
  readonly name: string;
  /** Names it may have instead. */
  readonly aliases?: readonly string[];
  /** Matrices are [rows out, columns in], row after row. */
  readonly shape: readonly number[];
  readonly kind: TensorKind;
  /** Where it is rows of a larger tensor (fused matrices): its first row, and how many that has. */
  readonly part?: { readonly first: number; readonly of: number };
}

/**
 * Matrices are multiplied with, rows of tables (the embedding) are looked up; both and vectors hold
 * real numbers. Ids hold token ids or offsets of them.
 */
export type TensorKind = "matrix" | "table" | "vector" | "ids";

/** Dtypes each kind may have in the file. */
const DTYPES: Readonly<Record<TensorKind, readonly string[]>> = {
  matrix: ["F32", "F16", "BF16"],
  table: ["F32", "F16", "BF16"],
  vector: ["F32", "F16", "BF16"],
  ids: ["I64", "I32"],
};

/**
 * Tensors that checkpoints carry and no forward needs: the inverse of d2t, rope frequencies (they
 * are computed), the lm_head of a tied model, which is the embedding once more, and all that sees.
 */
export const IGNORABLE: RegExp =
  /(^|\.)(t2d|rotary_emb\.inv_freq|lm_head\.weight)$|^(model\.)?(vision_tower|multi_modal_projector)\./;

/** The tensors of a decoder, in the order of the forward pass. */
export function targetTensors(config: ModelConfig): TensorSpec[] {
  const { vocabSize, hiddenSize, names } = config;
  const layers = config.layers.flatMap((spec, i) =>
    layerTensors(spec, { names, roles: `layers.${i}`, prefix: `layers.${i}`, hiddenSize })
  );
  const prefixed = [
    table("embed", "embed_tokens.weight", [vocabSize, hiddenSize]),
    ...layers,
    vector("norm", "norm.weight", hiddenSize),
  ];
  return [
    ...prefixed.map((spec) => withPrefixes(spec, names.prefixes)),
    ...config.tied ? [] : [matrix("head", "lm_head.weight", [vocabSize, hiddenSize])],
  ];
}

function withPrefixes(spec: TensorSpec, prefixes: readonly string[]): TensorSpec {
  const [name = spec.name, ...aliases] = prefixes.map((prefix) => prefix + spec.name);
  return { ...spec, name, ...aliases.length > 0 ? { aliases } : {} };
}

/** The tensors of an EAGLE head, in the order of the forward pass; its layer is `layers.0`. */
export function draftTensors(config: DraftConfig): TensorSpec[] {
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
  const [spec] = layer.layers as [LayerSpec];
  const embed = table("embed", `${prefix}embed_tokens.weight`, [vocabSize, hiddenSize]);
  const norms = [
    vector("layers.0.inputNorm", `${at.prefix}.input_layernorm.weight`, hiddenSize),
    vector("layers.0.hiddenNorm", `${at.prefix}.hidden_norm.weight`, hiddenSize),
  ];
  return [
    ...config.ownEmbedding ? [embed] : [],
    ...inputNormTensors(config),
    matrix("fc", `${prefix}${config.fc}.weight`, [hiddenSize, fcWidth]),
    ...config.fcBias ? [vector("fcBias", `${prefix}${config.fc}.bias`, hiddenSize)] : [],
    ...eagle3 ? norms : [],
    // EAGLE-3 attends over concat(embedding, hidden), both normed: twice as wide.
    ...attentionTensors(spec, at, eagle3 ? 2 * hiddenSize : hiddenSize),
    ...mlpTensors(spec, at),
    ...eagle3 ? [vector("norm", `${prefix}norm.weight`, hiddenSize)] : [],
    ...config.ownHead ? [matrix("head", "lm_head.weight", [draftVocabSize, hiddenSize])] : [],
    ...config.reducedVocab
      ? [{ role: "d2t", name: "d2t", shape: [draftVocabSize], kind: "ids" } as const]
      : [],
  ];
}

/** The norms before `fc`, in the order of its columns. */
function inputNormTensors(config: DraftConfig): TensorSpec[] {
  const { prefix, targetHiddenSize: width, layer: { hiddenSize }, inputNorms } = config;
  const norm = (i: number, module: string, size: number) =>
    vector(`inputNorms.${i}`, `${prefix}${module}.weight`, size);
  if (inputNorms === "none") return [];
  if (inputNorms === "whole") return [norm(0, "input_norm", 3 * width)];
  return config.algorithm === "EAGLE3"
    ? [0, 1, 2].map((i) => norm(i, `fc_norm.${i}`, width))
    : [norm(0, "embedding_layernorm", hiddenSize), norm(1, "hidden_states_layernorm", hiddenSize)];
}

/**
 * Checks that the checkpoint holds what `specs` ask for.
 * @param ignorable names of extra tensors that deserve no warning.
 * @returns one warning a further tensor: it will not be read.
 * @throws UsageError naming file and tensor when one is missing, of another shape or unusable
 * dtype, or comes with a part (a bias, a scale) that the forward would leave out.
 */
export function checkTensors(
  checkpoint: Checkpoint,
  specs: readonly TensorSpec[],
  ignorable: RegExp = IGNORABLE,
): string[] {
  for (const spec of specs) checkTensor(checkpoint, spec);
  const names = specs.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  const wanted = new Set(names);
  const modules = new Set(names.map((name) => name.replace(/\.(weight|bias)$/, "")));
  const extra = [...checkpoint.tensors.values()].filter(({ name }) => !wanted.has(name));
  for (const tensor of extra) {
    const module = tensor.name.slice(0, tensor.name.lastIndexOf("."));
    if (!modules.has(module)) continue;
    throw mismatch(checkpoint, tensor, "is part of a layer that is computed without it");
  }
  return extra
    .filter(({ name }) => !ignorable.test(name))
    .map(({ name, file }) => `${checkpoint.name}/${file}: tensor ${quote(name)} is not used`);
}

/**
 * What a spec asks for, as it lies in the checkpoint; of a fused tensor the spec's rows alone.
 * Undefined when it is missing.
 */
export function findTensor(
  { tensors }: Pick<Checkpoint, "tensors">,
  { name, aliases = [], shape, part }: TensorSpec,
): TensorInfo | undefined {
  const found = [name, ...aliases].flatMap((each) => tensors.get(each) ?? [])[0];
  if (found === undefined || part === undefined) return found;
  const rowBytes = found.size / part.of;
  const [rows = 0] = shape;
  return { ...found, shape, begin: found.begin + part.first * rowBytes, size: rows * rowBytes };
}

function checkTensor(checkpoint: Checkpoint, spec: TensorSpec): void {
  const { part, ...whole } = spec;
  const tensor = findTensor(checkpoint, whole);
  if (tensor === undefined) {
    const why = `tensor ${quote(spec.name)} is missing`;
    throw new UsageError(`Cannot use ${quote(checkpoint.name)}: ${why}`);
  }
  const { shape } = tensor;
  const wanted = part ? [part.of, ...spec.shape.slice(1)] : spec.shape;
  if (shape.length !== wanted.length || shape.some((size, i) => size !== wanted[i])) {
    const expected = `expected ${quote(wanted)}`;
    throw mismatch(checkpoint, tensor, `has shape ${quote(shape)}, ${expected} by config.json`);
  }
  const allowed = DTYPES[spec.kind];
  if (!allowed.includes(tensor.dtype)) {
    const expected = `expected ${allowed.join(", ")}`;
    throw mismatch(checkpoint, tensor, `has dtype ${quote(tensor.dtypeName)}, ${expected}`);
  }
}

function mismatch(checkpoint: Checkpoint, tensor: TensorInfo, why: string): UsageError {
  const path = `${checkpoint.name}/${tensor.file}`;
  return new UsageError(`Cannot use ${quote(path)}: tensor ${quote(tensor.name)} ${why}`);
}

/** Where the tensors of one layer are. */
interface Place {
  readonly names: TensorNames;
  /** Before roles: `layers.3`. */
  readonly roles: string;
  /** Before the names of modules. */
  readonly prefix: string;
  readonly hiddenSize: number;
}

function layerTensors(spec: LayerSpec, at: Place): TensorSpec[] {
  const before = spec.norms !== "after";
  const after = spec.norms !== "before";
  const norm = (role: LayerRole) => normTensor(role, at, at.hiddenSize);
  return [
    ...before ? [norm("inputNorm")] : [],
    ...attentionTensors(spec, at, at.hiddenSize),
    ...after ? [norm("attentionNorm")] : [],
    ...mlpTensors(spec, at),
    ...after ? [norm("mlpNorm")] : [],
  ];
}

/** @param width of what the attention reads. */
function attentionTensors({ attention }: LayerSpec, at: Place, width: number): TensorSpec[] {
  const { numHeads, numKvHeads, headDim, bias, qkNorm } = attention;
  const queries = numHeads * headDim;
  const keys = numKvHeads * headDim;
  const qkv: RowsOfRole[] = [["q", queries], ["k", keys], ["v", keys]];
  const whole = qkNorm === "whole";
  return [
    ...matrices(qkv, at, width),
    ...bias ? qkv.map(([role, rows]) => biasTensor(role, at, rows)) : [],
    ...qkNorm === "none" ? [] : [
      normTensor("qNorm", at, whole ? queries : headDim),
      normTensor("kNorm", at, whole ? keys : headDim),
    ],
    ...matrices([["o", at.hiddenSize]], at, queries),
  ];
}

function mlpTensors({ mlp, norms }: LayerSpec, at: Place): TensorSpec[] {
  const { hiddenSize } = at;
  const { intermediateSize } = mlp;
  return [
    ...norms === "after" ? [] : [normTensor("postNorm", at, hiddenSize)],
    ...matrices([["gate", intermediateSize], ["up", intermediateSize]], at, hiddenSize),
    ...matrices([["down", hiddenSize]], at, intermediateSize),
  ];
}

type RowsOfRole = readonly [role: LayerRole, rows: number];

/** Matrices of one width; those that share a module are its rows one after the other. */
function matrices(roles: readonly RowsOfRole[], at: Place, cols: number): TensorSpec[] {
  const moduleOf = ([role]: RowsOfRole) => at.names.modules[role];
  const groups = [...Map.groupBy(roles, moduleOf)];
  return groups.flatMap(([module, group]) => {
    const of = group.reduce((sum, [, rows]) => sum + rows, 0);
    let first = 0;
    return group.map(([role, rows]) => {
      const name = `${at.prefix}.${module}.weight`;
      const spec = matrix(`${at.roles}.${role}`, name, [rows, cols]);
      const part = { first, of };
      first += rows;
      return group.length > 1 ? { ...spec, part } : spec;
    });
  });
}

function normTensor(role: LayerRole, at: Place, size: number): TensorSpec {
  return vector(`${at.roles}.${role}`, `${at.prefix}.${at.names.modules[role]}.weight`, size);
}

/** Its role is the matrix's and "Bias". */
function biasTensor(role: LayerRole, at: Place, size: number): TensorSpec {
  return vector(`${at.roles}.${role}Bias`, `${at.prefix}.${at.names.modules[role]}.bias`, size);
}

function matrix(role: string, name: string, shape: readonly [number, number]): TensorSpec {
  return { role, name, shape, kind: "matrix" };
}

function table(role: string, name: string, shape: readonly [number, number]): TensorSpec {
  return { role, name, shape, kind: "table" };
}

function vector(role: string, name: string, size: number): TensorSpec {
  return { role, name, shape: [size], kind: "vector" };
}
