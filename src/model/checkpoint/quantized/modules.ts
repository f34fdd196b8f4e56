/** Reads matrices of quantized checkpoints as rows of one format, whatever tensors they consist of. */
import { GROUP, type Prequantized, WEIGHT_BYTES } from "../../../gpu/weight_format.ts";
import type { Checkpoint } from "../../files/checkpoint_type.ts";
import type { TensorInfo } from "../../files/safetensors.ts";
import { quote } from "../../files/fields.ts";
import { awqWords, gptqWords } from "./columns.ts";
import { badTensor, checkNarrow, readScales, readWords, rowScales, type Scales } from "./groups.ts";
import type { Scheme } from "./scheme.ts";

/** A quantized matrix and the tensors it consists of. */
export interface QuantizedModule {
  readonly format: Prequantized;
  readonly rows: number;
  readonly cols: number;
  /** The packed weights, the largest tensor. */
  readonly values: TensorInfo;
  /** `g_idx`, the group of each column; only groups in the order of k are supported. */
  readonly order: TensorInfo | undefined;
  readonly scales: TensorInfo;
  readonly zeros: TensorInfo | undefined;
  /** Weights that share a scale, where that is not as in the scheme. */
  readonly block?: NonNullable<Scheme["block"]>;
}

/**
 * Fills `into` with rows from `first` on. A row is its weights in the order of k, then a word for each GROUP
 * of them: an f32 scale, with u4's zero point in its lowest bits.
 */
export type ReadRows = (first: number, into: Uint32Array) => void;

/** Numbers of 32-bit words of a row: of its weights, and of weights and groups together. */
export function rowWords(
  { format, cols }: Pick<QuantizedModule, "format" | "cols">,
): { readonly weights: number; readonly all: number } {
  const weights = cols * WEIGHT_BYTES[format] / 4;
  return { weights, all: weights + cols / GROUP };
}

/** Reads the scales and zero points of a module, and returns the reader of its rows. @throws UsageError */
export function openModule(from: Checkpoint, module: QuantizedModule, of: Scheme): ReadRows {
  const scheme = { ...of, block: module.block ?? of.block };
  const transposed = scheme.layout === "gptq" || scheme.layout === "awq";
  if (transposed) checkOrder(from, module, scheme);
  const scales = transposed
    ? transposedScales(from, module, scheme)
    : scalesOfRows(from, module, scheme);
  if (module.format === "u4") checkNarrow(from, module.scales, scales.bits);
  const zeros = zerosOf(from, module, scheme);
  const readWeights = transposed
    ? readTransposed(from, module, scheme)
    : readStraight(from, module, scheme);
  const { weights, all } = rowWords(module);
  return (first, into) => {
    readWeights(first, into);
    for (let row = 0; row * all < into.length; row++) {
      const groups = into.subarray(row * all + weights, (row + 1) * all);
      rowScales(scales, first + row, groups);
      if (zeros) addZeros(groups, { zeros, row: first + row, ...scales });
    }
  };
}

function addZeros(
  groups: Uint32Array,
  { zeros, row, block, width }: Omit<Scales, "bits"> & { zeros: Uint8Array; row: number },
): void {
  const share = block.cols / GROUP;
  for (let group = 0; group < groups.length; group++) {
    const zero = zeros[row * width + Math.floor(group / share)] ?? 0;
    groups[group] = ((groups[group] ?? 0) | zero) >>> 0;
  }
}

const WHOLE = { rows: Infinity, cols: Infinity };

/** Reads scales stored as [rows of blocks, blocks along k], or one per tensor or row. */
function scalesOfRows(from: Checkpoint, module: QuantizedModule, { block }: Scheme): Scales {
  const bits = readScales(from, module.scales);
  const { rows, cols } = module;
  // One scale is the tensor's, whatever the config says of others: embeddings beside matrices with scales of blocks.
  const whole = bits.length === 1 && module.format !== "u4";
  const found = whole ? WHOLE : block ?? { rows: 1, cols: Infinity };
  const width = blocks(cols, found.cols);
  const count = blocks(rows, found.rows) * width;
  if (bits.length !== count) {
    throw badTensor(from, module.scales, `has ${bits.length} scales, expected ${count}`);
  }
  const { shape } = module.scales;
  // As many, but of columns of blocks where rows are expected.
  if (width > 1 && shape.length > 1 && shape.at(-1) !== width) {
    throw badTensor(from, module.scales, `has shape ${quote(shape)}, expected ${width} in a row`);
  }
  return { bits, block: found, width };
}

/** Reads scales stored as [blocks along k, rows], and transposes them. */
function transposedScales(from: Checkpoint, module: QuantizedModule, { block }: Scheme): Scales {
  const { rows, cols, scales } = module;
  const found = block ?? { rows: 1, cols: Infinity };
  const width = blocks(cols, found.cols);
  const stored = readScales(from, scales);
  const bits = new Uint32Array(stored.length);
  for (let at = 0; at < stored.length; at++) {
    bits[at % rows * width + Math.floor(at / rows)] = stored[at] ?? 0;
  }
  return { bits, block: found, width };
}

/** How many blocks a size has; one if the block is all of it. */
export function blocks(size: number, block: number): number {
  return Number.isFinite(block) ? Math.ceil(size / block) : 1;
}

/** The column, of eight, of nibble i of an AWQ word: AutoAWQ's order_map. */
const AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7];
const IN_ORDER = [0, 1, 2, 3, 4, 5, 6, 7];

/** Zero points of u4, [rows, blocks along k]; 8 if quantization is symmetric. Undefined for other formats. */
function zerosOf(
  from: Checkpoint,
  { format, rows, cols, zeros: tensor }: QuantizedModule,
  { layout, block, zeroStep }: Scheme,
): Uint8Array | undefined {
  if (format !== "u4") return undefined;
  const width = blocks(cols, block?.cols ?? Infinity);
  const zeros = new Uint8Array(rows * width);
  if (tensor === undefined) return zeros.fill(8);
  const alongRows = layout === "packed";
  checkShape(from, tensor, alongRows ? [Math.ceil(rows / 8), width] : [width, rows / 8]);
  const words = readWords(from, tensor);
  const order = layout === "awq" ? AWQ_ORDER : IN_ORDER;
  for (const [at, word] of words.entries()) {
    const [eight, group] = alongRows
      ? [Math.floor(at / width), at % width]
      : [at % (rows / 8), Math.floor(at / (rows / 8))];
    for (const [i, place] of order.entries()) {
      const row = 8 * eight + place;
      // AutoGPTQ keeps only four bits of the sum.
      if (row < rows) zeros[row * width + group] = (word >>> 4 * i) + zeroStep & 15;
    }
  }
  return zeros;
}

/** @throws UsageError if groups are not in the order of k (act-order). */
function checkOrder(from: Checkpoint, { order, cols }: QuantizedModule, { block }: Scheme): void {
  if (order === undefined) return;
  checkShape(from, order, [cols]);
  const groups = readWords(from, order);
  const size = block?.cols ?? Infinity;
  if (groups.every((group, k) => group === Math.floor(k / size))) return;
  // Early files without desc_act have zeros; ExLlama and vLLM do not use them either.
  if (groups.every((group) => group === 0)) return;
  const why =
    "puts columns into groups by activation (desc_act), supported is the order of columns";
  throw badTensor(from, order, why);
}

function readTransposed(from: Checkpoint, module: QuantizedModule, { layout }: Scheme): ReadRows {
  const { values, rows, cols } = module;
  const stored = readWords(from, values);
  const words = (layout === "awq" ? awqWords : gptqWords)(stored, { rows, cols });
  const { weights, all } = rowWords(module);
  return (first, into) => {
    for (let row = 0; row * all < into.length; row++) {
      const at = (first + row) * weights;
      into.set(words.subarray(at, at + weights), row * all);
    }
  };
}

function readStraight(from: Checkpoint, module: QuantizedModule, { layout }: Scheme): ReadRows {
  const { weights, all } = rowWords(module);
  return (first, into) => {
    const count = into.length / all;
    const bytes = new Uint8Array(count * weights * 4);
    from.read(module.values, first * weights * 4, bytes);
    const words = new Uint32Array(bytes.buffer);
    if (layout === "fp8") checkNumbers(from, module.values, words);
    // Two's complement to an offset of 128.
    if (layout === "integers") { for (const [i, word] of words.entries()) words[i] = word ^ SIGNS; }
    for (let row = 0; row < count; row++) {
      into.set(words.subarray(row * weights, (row + 1) * weights), row * all);
    }
  };
}

const SIGNS = 0x80808080;

/** Refuses NaN, which in e4m3 has all bits set except perhaps the sign. */
function checkNumbers(from: Checkpoint, tensor: TensorInfo, words: Uint32Array): void {
  const broken = words.some((word) => ((word & 0x7f7f7f7f) + 0x01010101 & SIGNS) !== 0);
  if (broken) throw badTensor(from, tensor, "has a weight that is no number");
}

export function checkShape(
  from: Pick<Checkpoint, "name">,
  tensor: TensorInfo,
  shape: readonly number[],
): void {
  if (tensor.shape.length === shape.length && shape.every((n, i) => n === tensor.shape[i])) return;
  throw badTensor(from, tensor, `has shape ${quote(tensor.shape)}, expected ${quote(shape)}`);
}
