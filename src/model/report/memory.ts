/** How much GPU memory a model takes, from its config and headers alone. */
import { partialTopWords } from "../../../kernels/tree/top.ts";
import { KV_BYTES, type KvDtype } from "../../gpu/kv.ts";
import { isQuantizable, type Quantization, scaleBytes, WEIGHT_BYTES } from "../../gpu/matrix.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { PREFILL_ROWS } from "../plan/device_layout.ts";
import type { AnyDraftConfig, ModelConfig } from "../config/types.ts";
import { attentionSizes, type LayerConfig } from "../config/layer_config.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import { rowElements } from "./scratch.ts";
import { findTensor, isGrouped, type TensorSpec } from "../weights/tensors.ts";

const F32_BYTES = 4;

/** Numbers a model has learned: matrices and vectors, not token ids. */
export function parameterCount(specs: readonly TensorSpec[]): number {
  return sum(specs.filter(({ kind }) => kind !== "ids").map(elements));
}

/** Of these, those that a token is multiplied with: of experts, as many as are chosen. */
export function activeParameterCount(specs: readonly TensorSpec[]): number {
  const read = specs.filter(({ kind }) => kind !== "ids");
  return Math.round(sum(read.map((spec) => elements(spec) * (spec.share ?? 1))));
}

/**
 * Bytes of the weights on the GPU: matrices and tables as the checkpoint has them, f32 where tensors of
 * several types share a matrix; vectors (norms, biases) widened to f32, ids narrowed to 32 bits.
 * Tensors that are absent count nothing.
 *
 * @param quantize what matrices become where their width allows it.
 */
export function weightBytes(
  checkpoint: Pick<Checkpoint, "tensors">,
  specs: readonly TensorSpec[],
  quantize?: Quantization,
): number {
  const mixed = mixedMatrices(checkpoint, specs);
  return sum(specs.map((spec) => {
    const tensor = findTensor(checkpoint, spec);
    if (tensor === undefined) return 0;
    if (spec.kind === "vector" || spec.kind === "ids") return F32_BYTES * elements(spec);
    const [rows = 0, cols = 0] = spec.shape;
    if (spec.kind === "table" && isGrouped(tensor.dtype)) return F32_BYTES * elements(spec);
    const stays = spec.kind !== "matrix" || !isQuantizable(cols) || isGrouped(tensor.dtype);
    const dtypes = mixed.get(matrixOf(spec));
    if (dtypes && (!quantize || stays || dtypes.some(isGrouped))) return F32_BYTES * elements(spec);
    if (!quantize || stays) return tensor.size;
    return rows * (cols * WEIGHT_BYTES[quantize] + scaleBytes(quantize, cols));
  }));
}

/** Roles whose tensors are rows of one matrix: q, k and v; gate and up; those of all experts. */
const SHARED =
  /^(.*\.)(?:([qkv])|(gate|up)|(shared(?:Gate|Up))|(expert(?:Gate|Up)\.\d+)|(expertDown\.\d+))$/;

/** The matrix that a tensor is rows of. */
function matrixOf({ role }: TensorSpec): string {
  const [, place, ...kinds] = SHARED.exec(role) ?? [];
  return place === undefined ? role : `${place}${kinds.findIndex((kind) => kind !== undefined)}`;
}

/** Matrices whose tensors are of several types, with these. */
function mixedMatrices(
  checkpoint: Pick<Checkpoint, "tensors">,
  specs: readonly TensorSpec[],
): ReadonlyMap<string, readonly string[]> {
  const groups = Map.groupBy(specs.filter(({ kind }) => kind === "matrix"), matrixOf);
  const dtypes = (group: readonly TensorSpec[]) => [
    ...new Set(group.flatMap((spec) => findTensor(checkpoint, spec)?.dtype ?? [])),
  ];
  return new Map(
    [...groups].map(([matrix, group]) => [matrix, dtypes(group)] as const)
      .filter(([, found]) => found.length > 1),
  );
}

/** Matrices that stay as they are although `quantize` was asked for. */
export interface KeptMatrices {
  /** Those whose width forbids it. */
  readonly narrow: readonly TensorSpec[];
  /** Those that the checkpoint has quantized. */
  readonly quantized: readonly TensorSpec[];
}

export function keptMatrices(
  checkpoint: Pick<Checkpoint, "tensors">,
  specs: readonly TensorSpec[],
): KeptMatrices {
  const grouped = (spec: TensorSpec) => isGrouped(findTensor(checkpoint, spec)?.dtype ?? "");
  const matrices = specs.filter(({ kind }) => kind === "matrix");
  return {
    narrow: matrices.filter((spec) => !grouped(spec) && !isQuantizable(spec.shape[1] ?? 0)),
    quantized: matrices.filter(grouped),
  };
}

/** How a checkpoint's matrices are quantized, for people; undefined where none is. */
export function methodOf({ tensors }: Pick<Checkpoint, "tensors">): string | undefined {
  return tensors.values().find(({ dtype }) => isGrouped(dtype))?.dtypeName;
}

/** Bytes of keys and values that one token takes in all layers. */
export function kvBytesPerToken({ layers }: ModelConfig, kvDtype: KvDtype = "f32"): number {
  return KV_BYTES[kvDtype] * sum(layers.map(keptElements));
}

/**
 * Bytes of working memory that a set of tiers takes for `batch` sequences: logits of the widest
 * verify forward, its rows beyond a prefill chunk, and, where a tier decodes without the draft
 * beside others that use it, the features kept for the draft to catch up on.
 */
export function tierBytes(
  target: ModelConfig,
  draft: AnyDraftConfig | undefined,
  { tiers, batch, kvTokens }: {
    readonly tiers: readonly DraftShape[];
    readonly batch: number;
    /** Tokens whose keys and values are kept. */
    readonly kvTokens: number;
  },
): number {
  const rows = Math.ceil(batch * Math.max(...tiers.map(({ rows }) => rows)) / 8) * 8;
  const drafting = draft && tiers.some(({ depth }) => depth > 0);
  const logits = rows * target.vocabSize + (drafting ? batch * draft.draftVocabSize : 0);
  const beyond = Math.max(0, rows - PREFILL_ROWS);
  const perRow = rowElements(target, { drafts: false }) +
    (drafting ? rowElements(draft.layer, { drafts: true }) : 0);
  const kept = drafting && tiers.some(({ depth }) => depth === 0)
    ? kvTokens * featureBytes(target, draft)
    : 0;
  return F32_BYTES * (logits + beyond * perRow) + kept;
}

/** Bytes that levels of trees take, of `rows` rows with `width` candidates each: logits, tokens, hidden rows. */
export function treeBytes(draft: AnyDraftConfig, rows: number, width: number): number {
  if (rows === 0) return 0;
  const { draftVocabSize, layer: { hiddenSize } } = draft;
  const each = draftVocabSize + hiddenSize + partialTopWords(draftVocabSize, width);
  return F32_BYTES * rows * each;
}

/** Bytes of the target's features of one token that are kept for the draft to catch up on. */
export function featureBytes(target: ModelConfig, { algorithm }: AnyDraftConfig): number {
  if (algorithm === "STANDALONE") return 0; // it reads tokens alone
  return F32_BYTES * (algorithm === "EAGLE3" ? 3 * target.hiddenSize : target.hiddenSize);
}

function keptElements({ attention }: LayerConfig): number {
  const { keys, values } = attentionSizes(attention);
  return keys + values;
}

function elements(spec: TensorSpec): number {
  return spec.shape.reduce((product, size) => product * size, 1);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
