// What quantize.wgsl promises, in plain numbers.

import type { Matrix } from "../../src/gpu/matrix.ts";
import {
  BLOCK_VEC8S,
  GROUP,
  lanesFor,
  type Quantization,
  scaleBytes,
} from "../../src/gpu/weight_format.ts";
import type { Device } from "../gpu/device.ts";

interface Shape {
  readonly format: Quantization;
  readonly cols: number;
  /** Lanes that the rows are packed for. */
  readonly lanes: number;
}

/** A packed matrix: the words of its two buffers, and the numbers they stand for. */
export interface Packed {
  readonly words: Uint32Array;
  readonly scales: Uint32Array;
  /** [rows, cols], each exactly q * scale. */
  readonly values: Float32Array;
}

const RANGE = { q8: { least: -127, most: 127 }, q4: { least: -8, most: 7 } } as const;

/** The f16 scale of a group. */
export function scaleOf(format: Quantization, group: Float32Array): number {
  const least = Math.min(...group);
  const most = Math.max(...group);
  const exact = format === "q8"
    ? Math.fround(Math.max(most, -least) * Math.fround(1 / 127))
    : (most > -least ? most : least) * -0.125;
  const [nearest = 0] = Float16Array.of(exact);
  return Math.max(-65504, Math.min(65504, nearest)) + 0; // -0 becomes 0
}

/** The integer nearest to w / scale, halves down; 0 where the scale is. */
export function quantizedTo(format: Quantization, w: number, scale: number): number {
  if (scale === 0) return 0;
  const { least, most } = RANGE[format];
  return Math.max(least, Math.min(most, Math.ceil(w / scale - 0.5)));
}

/** Where scale `group` of a row lies among the row's. */
function scalePlace(group: number, { format, lanes }: Shape): number {
  const quads = Math.max(1, lanes / 4);
  const vec8s = BLOCK_VEC8S[format];
  const [quad, turn] = [group % quads, Math.floor(group / quads)];
  return (Math.floor(turn / vec8s) * quads + quad) * vec8s + turn % vec8s;
}

/** The lowest bit of weight i: bytes in order, or nibbles 0 to 3 in the lower halves of bytes. */
function placeInVec8(format: Quantization, i: number): number {
  return format === "q8" ? 8 * i : 8 * (i % 4) + (i < 4 ? 0 : 4);
}

/**
 * Activations as lib/dot.wgsl makes them: a vec8 in 128 steps up to a bound, the first quarter of a power of two above
 * its largest number and 2^-7 of that number's power.
 */
export function roundedVec8s(x: Float32Array): Float32Array {
  const out = new Float32Array(x.length);
  for (let at = 0; at < x.length; at += 8) {
    const largest = Math.max(2 ** -90, ...x.subarray(at, at + 8).map(Math.abs));
    const above = largest + powerOf(largest) / 128;
    const quarter = powerOf(above) / 4;
    const bound = Math.max(2 ** -67, quarter * (Math.floor(above / quarter) + 1));
    // Stored as f32, of which a power of two changes no digit.
    const inverse = Math.fround(powerOf(bound) / bound) / powerOf(bound) * 128;
    for (let i = at; i < at + 8; i++) out[i] = toEven((x[i] ?? NaN) * inverse) * bound / 128;
  }
  return out;
}

/** The power of two at or below a positive number. */
function powerOf(x: number): number {
  return 2 ** Math.floor(Math.log2(x));
}

/** The nearest integer, of two as near the even one. */
function toEven(x: number): number {
  const floor = Math.floor(x);
  if (x - floor !== 0.5) return Math.round(x);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Packs `values`, [rows, cols]. */
export function pack(values: Float32Array, shape: Shape): Packed {
  const { format, cols, lanes } = shape;
  const rows = values.length / cols;
  const vec8s = BLOCK_VEC8S[format];
  const bits = 16 / vec8s; // of a weight: 8 or 4
  const words = new Uint32Array(values.length * bits / 32);
  const scales = new Float16Array(rows * cols / GROUP);
  const out = new Float32Array(values.length);
  for (let at = 0; at < values.length; at += GROUP) {
    const [row, group] = [Math.floor(at / cols), at % cols / GROUP];
    const scale = scaleOf(format, values.subarray(at, at + GROUP));
    scales[row * cols / GROUP + scalePlace(group, shape)] = scale;
    for (let i = 0; i < GROUP; i++) {
      const q = quantizedTo(format, values[at + i] ?? 0, scale);
      out[at + i] = q * scale;
      const k = at % cols + i;
      const vec8 = Math.floor(k / 8);
      const turn = Math.floor(vec8 / lanes);
      const block = Math.floor(turn / vec8s) * lanes + vec8 % lanes;
      // Of the row's bits: blocks of 128, vec8s of 8 weights in two's complement.
      const bit = block * 128 + turn % vec8s * 8 * bits + placeInVec8(format, k % 8);
      const word = row * cols * bits / 32 + Math.floor(bit / 32);
      words[word] = (words[word] ?? 0) | (q & (1 << bits) - 1) << bit % 32;
    }
  }
  return { words, scales: new Uint32Array(scales.buffer), values: out };
}

/** A quantized matrix of zeros in one shard. */
export function emptyQuantized(
  device: Device,
  { format, cols, rows, most }: {
    readonly format: Quantization;
    readonly cols: number;
    readonly rows: number;
    /** Lanes of the adapter. */
    readonly most: number;
  },
): Matrix {
  const operand = device.filled(rows * cols / (format === "q8" ? 4 : 8));
  const scales = device.filled(rows * scaleBytes(format, cols) / 4);
  const lanes = lanesFor(format, cols, most);
  return {
    format,
    rowOrder: "stacked",
    rows,
    cols,
    lanes,
    shards: [{ operand, scales, first: 0, rows }],
  };
}

/** `values` packed on the host and uploaded, [rows, cols]. */
export function uploadQuantized(
  device: Device,
  values: Float32Array,
  shape: Omit<Shape, "lanes"> & { readonly most: number },
): Matrix {
  const { format, cols, most } = shape;
  const lanes = lanesFor(format, cols, most);
  const packed = pack(values, { format, cols, lanes });
  const rows = values.length / cols;
  const operand = device.words(packed.words);
  const scales = device.words(packed.scales);
  return {
    format,
    rowOrder: "stacked",
    rows,
    cols,
    lanes,
    shards: [{ operand, scales, first: 0, rows }],
  };
}
