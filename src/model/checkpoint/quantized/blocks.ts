/**
 * Matrices as `eyrie convert --quantize` stores them: U8 tensors [rows, cols / 32 * bytes of a block] under
 * their own names. A block is a group of 32 weights along k: the f16 scale, then the integers in the order
 * of k as words of kernels/matmul/quantize.wgsl. config.json says
 * `"quantization_config": {"quant_method": "eyrie", "format": "q4", "version": 1}`.
 */
import {
  BLOCK_VEC8S,
  GROUP,
  isQuantizable,
  type Quantization,
} from "../../../gpu/weight_format.ts";
import type { Checkpoint } from "../../files/checkpoint_type.ts";
import { type Fields, nested, quote, unusable, value } from "../../files/fields.ts";
import type { TensorInfo } from "../../files/safetensors.ts";
import { badTensor } from "./groups.ts";

/** `quant_method` of config.json. */
const METHOD = "eyrie";
const VERSION = 1;
const DTYPE = { q8: "GROUPED_Q8", q4: "GROUPED_Q4" } as const;
const RANGE = { q8: { min: -127, max: 127 }, q4: { min: -8, max: 7 } } as const;
/** The f32 nearest to 1 / 127. */
const PER_127 = Math.fround(1 / 127);
/** The largest f16. */
const MAX_SCALE = 65504;

/** Bytes of a block. */
export const BLOCK_BYTES: Readonly<Record<Quantization, number>> = { q8: 2 + 32, q4: 2 + 16 };

/** The quantization_config of a checkpoint stored in blocks. */
export function blocksConfig(format: Quantization): Record<string, unknown> {
  return { quant_method: METHOD, format, version: VERSION, group_size: GROUP };
}

/** The format of a checkpoint stored in blocks, undefined for others. @throws UsageError for an unknown format. */
export function blocksFormat(config: Fields): Quantization | undefined {
  const found = nested(config, "quantization_config");
  if (found === undefined || value(found, "quant_method") !== METHOD) return undefined;
  const [format, version] = [value(found, "format"), value(found, "version")];
  if (version !== VERSION) {
    throw unusable(found, `has version ${quote(version ?? null)}, supported is ${VERSION}`);
  }
  if (format === "q4" || format === "q8") return format;
  throw unusable(found, `has format ${quote(format ?? null)}, supported are q4, q8`);
}

/** The shape of the U8 tensor that stores matrices [..., rows, cols] one after the other. */
export function storedShape(
  format: Quantization,
  shape: readonly number[],
): [rows: number, bytes: number] {
  const cols = shape.at(-1) ?? 0;
  const rows = shape.slice(0, -1).reduce((product, size) => product * size, 1);
  return [rows, cols / GROUP * BLOCK_BYTES[format]];
}

/** The checkpoint with its U8 matrices as tensors of GROUPED_Q4 or GROUPED_Q8. @throws UsageError */
export function blocksView(checkpoint: Checkpoint, format: Quantization): Checkpoint {
  const view = (tensor: TensorInfo): TensorInfo => {
    const [rows = 0, bytes = 0] = tensor.shape;
    const cols = bytes / BLOCK_BYTES[format] * GROUP;
    if (tensor.shape.length !== 2 || !Number.isInteger(cols) || !isQuantizable(cols)) {
      const shape = quote(tensor.shape);
      throw badTensor(checkpoint, tensor, `has shape ${shape}, expected rows of whole blocks`);
    }
    const dtypeName = `${format} of eyrie convert`;
    return { ...tensor, dtype: DTYPE[format], dtypeName, shape: [rows, cols] };
  };
  const tensors = [...checkpoint.tensors].map(([name, tensor]) =>
    [name, tensor.dtypeName === "U8" ? view(tensor) : tensor] as const
  );
  return {
    ...checkpoint,
    tensors: new Map(tensors),
    [Symbol.dispose]: () => checkpoint[Symbol.dispose](),
  };
}

/**
 * Packs weights into blocks, bit for bit as kernels/matmul/quantize.wgsl does.
 *
 * @param values whole groups: every GROUP consecutive weights are one.
 */
export function packBlocks(values: Float32Array, format: Quantization): Uint8Array<ArrayBuffer> {
  const size = BLOCK_BYTES[format];
  const count = values.length / GROUP;
  const out = new Uint8Array(count * size);
  const view = new DataView(out.buffer);
  const { min, max } = RANGE[format];
  const [nearest, bits] = halfBuffers();
  for (let group = 0; group < count; group++) {
    const from = group * GROUP;
    const at = group * size;
    nearest[0] = scaleOf(format, values, from);
    const scale = clampScale(nearest[0] ?? 0);
    nearest[0] = scale;
    view.setUint16(at, bits[0] ?? 0, true);
    if (scale === 0) continue;
    for (let i = 0; i < GROUP; i++) {
      // Rounds to the nearest integer, halves down. f64 is precise enough for an f32 divided by an f16.
      const q = Math.max(min, Math.min(max, Math.ceil((values[from + i] ?? 0) / scale - 0.5)));
      if (format === "q8") out[at + 2 + i] = q & 255;
      else {
        // Byte i of a vec8's word has weight i in its low and weight 4 + i in its high nibble.
        const place = at + 2 + (i >> 3) * 4 + (i & 3);
        out[place] = (out[place] ?? 0) | (q & 15) << (i & 4);
      }
    }
  }
  return out;
}

/** One f16, and its bits. */
function halfBuffers(): [Float16Array, Uint16Array] {
  const half = new Float16Array(1);
  return [half, new Uint16Array(half.buffer)];
}

/** The scale of a group before it is rounded to f16. */
function scaleOf(format: Quantization, values: Float32Array, from: number): number {
  let min = Infinity;
  let max = -Infinity;
  for (let i = from; i < from + GROUP; i++) {
    const value = values[i] ?? 0;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  if (format === "q8") return Math.fround(Math.max(max, -min) * PER_127);
  return (max > -min ? max : min) * -0.125;
}

/** Clamps a scale to the range of f16, and turns -0 into 0. */
function clampScale(nearest: number): number {
  return Math.max(-MAX_SCALE, Math.min(MAX_SCALE, nearest)) + 0;
}

/** Rows in lane order, as the lanes of a matmul read them. */
export interface LaneBlocks {
  readonly words: Uint16Array<ArrayBuffer>;
  /** f16. */
  readonly scales: Uint16Array<ArrayBuffer>;
}

/**
 * Returns a function that permutes blocks of rows to lane order, see kernels/matmul/quantize.wgsl. The tables
 * of a matrix are computed once for all its rows.
 */
export function blocksToLanes(
  { format, cols, lanes }: {
    readonly format: Quantization;
    readonly cols: number;
    readonly lanes: number;
  },
): (bytes: Uint8Array<ArrayBuffer>) => LaneBlocks {
  const groups = cols / GROUP;
  const size = BLOCK_BYTES[format] / 2; // halves of words
  const each = size - 1;
  const vec8s = BLOCK_VEC8S[format];
  const halves = each / 4; // of a vec8
  const quads = Math.max(1, lanes / 4);
  const scalePlaces = Uint32Array.from({ length: groups }, (_, group) => {
    const turn = Math.floor(group / quads);
    return (Math.floor(turn / vec8s) * quads + group % quads) * vec8s + turn % vec8s;
  });
  const places = Uint32Array.from({ length: groups * each }, (_, i) => {
    const vec8 = Math.floor(i / halves);
    const turn = Math.floor(vec8 / lanes); // j * vec8s + c
    const block = Math.floor(turn / vec8s) * lanes + vec8 % lanes;
    return 8 * block + turn % vec8s * halves + i % halves;
  });
  return (bytes) => {
    const from = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
    const rows = from.length / (groups * size);
    const words = new Uint16Array(rows * groups * each);
    const scales = new Uint16Array(rows * groups);
    let at = 0;
    for (let row = 0; row < rows; row++) {
      const first = row * groups * each;
      for (let group = 0; group < groups; group++) {
        scales[row * groups + (scalePlaces[group] ?? 0)] = from[at++] ?? 0;
        for (let i = group * each; i < (group + 1) * each; i++) {
          words[first + (places[i] ?? 0)] = from[at++] ?? 0;
        }
      }
    }
    return { words, scales };
  };
}

/** Converts blocks to float32: integer times scale, which is exact. */
export function blockValues(bytes: Uint8Array, format: Quantization): Float32Array<ArrayBuffer> {
  const size = BLOCK_BYTES[format];
  const out = new Float32Array(bytes.length / size * GROUP);
  const [half, bits] = halfBuffers();
  for (let block = 0; block * size < bytes.length; block++) {
    const at = block * size;
    bits[0] = (bytes[at] ?? 0) | (bytes[at + 1] ?? 0) << 8;
    const scale = half[0] ?? 0;
    for (let i = 0; i < GROUP; i++) {
      const q8 = (bytes[at + 2 + i] ?? 0) << 24 >> 24;
      const nibble = (bytes[at + 2 + (i >> 3) * 4 + (i & 3)] ?? 0) >> (i & 4);
      out[block * GROUP + i] = (format === "q8" ? q8 : nibble << 28 >> 28) * scale;
    }
  }
  return out;
}
