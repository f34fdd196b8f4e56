import { UsageError } from "../errors.ts";
import type { Checkpoint, TensorInfo } from "./checkpoint.ts";
import type { DraftConfig, ModelConfig } from "./config.ts";
import { quote } from "./fields.ts";

/** One tensor that a model needs. */
export interface TensorSpec {
  /** What it is in the forward pass: `embed`, `layers.3.q`, `layers.3.inputNorm`, `d2t`, ... */
  readonly role: string;
  /** Its name in the checkpoint. */
  readonly name: string;
  /** Matrices are [rows out, columns in], row after row. */
  readonly shape: readonly number[];
  readonly kind: TensorKind;
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
 * are computed), and the lm_head of a tied model, which is the embedding once more.
 */
export const IGNORABLE: RegExp = /(^|\.)(t2d|rotary_emb\.inv_freq|lm_head\.weight)$/;

/** The tensors of a Llama or Qwen3 decoder, in the order of the forward pass. */
export function targetTensors(config: ModelConfig): TensorSpec[] {
  const { vocabSize, hiddenSize, numLayers } = config;
  const layers = Array.from({ length: numLayers }, (_, layer) => {
    const at = place(`layers.${layer}`, `model.layers.${layer}`);
    return [
      at.vector("inputNorm", "input_layernorm", hiddenSize),
      ...attentionTensors(at, config, hiddenSize),
      ...mlpTensors(at, config),
    ];
  });
  return [
    table("embed", "model.embed_tokens.weight", [vocabSize, hiddenSize]),
    ...layers.flat(),
    vector("norm", "model.norm.weight", hiddenSize),
    ...config.tied ? [] : [matrix("head", "lm_head.weight", [vocabSize, hiddenSize])],
  ];
}

/** The tensors of an EAGLE head, in the order of the forward pass; its layer is `layers.0`. */
export function draftTensors(config: DraftConfig): TensorSpec[] {
  const { layer, prefix, draftVocabSize } = config;
  const { hiddenSize, vocabSize } = layer;
  const eagle3 = config.algorithm === "EAGLE3";
  const fcWidth = eagle3 ? 3 * config.targetHiddenSize : 2 * hiddenSize;
  const at = place("layers.0", prefix + config.layerPrefix);
  const embed = table("embed", `${prefix}embed_tokens.weight`, [vocabSize, hiddenSize]);
  const norms = [
    at.vector("inputNorm", "input_layernorm", hiddenSize),
    at.vector("hiddenNorm", "hidden_norm", hiddenSize),
  ];
  return [
    ...config.ownEmbedding ? [embed] : [],
    matrix("fc", `${prefix}fc.weight`, [hiddenSize, fcWidth]),
    ...config.fcBias ? [vector("fcBias", `${prefix}fc.bias`, hiddenSize)] : [],
    ...eagle3 ? norms : [],
    // EAGLE-3 attends over concat(embedding, hidden), both normed: twice as wide.
    ...attentionTensors(at, layer, eagle3 ? 2 * hiddenSize : hiddenSize),
    ...mlpTensors(at, layer),
    ...eagle3 ? [vector("norm", `${prefix}norm.weight`, hiddenSize)] : [],
    ...config.ownHead ? [matrix("head", "lm_head.weight", [draftVocabSize, hiddenSize])] : [],
    ...config.reducedVocab
      ? [{ role: "d2t", name: "d2t", shape: [draftVocabSize], kind: "ids" } as const]
      : [],
  ];
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
  const wanted = new Set(specs.map(({ name }) => name));
  const modules = new Set(specs.map(({ name }) => name.replace(/\.weight$/, "")));
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

function checkTensor(checkpoint: Checkpoint, spec: TensorSpec): void {
  const tensor = checkpoint.tensors.get(spec.name);
  if (tensor === undefined) {
    const why = `tensor ${quote(spec.name)} is missing`;
    throw new UsageError(`Cannot use ${quote(checkpoint.name)}: ${why}`);
  }
  const { shape } = tensor;
  if (shape.length !== spec.shape.length || shape.some((size, i) => size !== spec.shape[i])) {
    const expected = `expected ${quote(spec.shape)}`;
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

/** Writes specs of one layer: role and tensor name after the layer's own. */
interface Place {
  matrix(role: string, module: string, shape: readonly [number, number]): TensorSpec;
  vector(role: string, module: string, size: number): TensorSpec;
}

function place(roles: string, names: string): Place {
  return {
    matrix: (role, module, shape) => matrix(`${roles}.${role}`, `${names}.${module}.weight`, shape),
    vector: (role, module, size) => vector(`${roles}.${role}`, `${names}.${module}.weight`, size),
  };
}

function attentionTensors(at: Place, config: ModelConfig, width: number): TensorSpec[] {
  const { hiddenSize, headDim } = config;
  const queries = config.numHeads * headDim;
  const keys = config.numKvHeads * headDim;
  const norms = [
    at.vector("qNorm", "self_attn.q_norm", headDim),
    at.vector("kNorm", "self_attn.k_norm", headDim),
  ];
  return [
    at.matrix("q", "self_attn.q_proj", [queries, width]),
    at.matrix("k", "self_attn.k_proj", [keys, width]),
    at.matrix("v", "self_attn.v_proj", [keys, width]),
    ...config.qkNorm ? norms : [],
    at.matrix("o", "self_attn.o_proj", [hiddenSize, queries]),
  ];
}

function mlpTensors(at: Place, config: ModelConfig): TensorSpec[] {
  const { hiddenSize, intermediateSize } = config;
  return [
    at.vector("postNorm", "post_attention_layernorm", hiddenSize),
    at.matrix("gate", "mlp.gate_proj", [intermediateSize, hiddenSize]),
    at.matrix("up", "mlp.up_proj", [intermediateSize, hiddenSize]),
    at.matrix("down", "mlp.down_proj", [hiddenSize, intermediateSize]),
  ];
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
