/** Converts rows of quantized checkpoints to float32, for tables whose rows are looked up or read in two ways. */
import { GROUP, type Prequantized, WEIGHT_BYTES } from "../../../gpu/weight_format.ts";
import { e4m3 } from "./e4m3.ts";
import { rowWords } from "./modules.ts";

/**
 * The float32 values, [rows, cols], of rows as `ReadRows` fills them: the same as kernels/lib/weights_u4.wgsl,
 * _i8, _f8, _mxfp4 and _nvfp4 compute.
 */
export function dequantized(
  words: Uint32Array<ArrayBuffer>,
  { format, cols }: { readonly format: Prequantized; readonly cols: number },
): Float32Array<ArrayBuffer> {
  if (format === "nvfp4") return nvfp4Values(words, cols);
  const { weights, all } = rowWords({ format, cols });
  const rows = words.length / all;
  const bits = 8 * WEIGHT_BYTES[format];
  const table = valueTable(format);
  const zeroBits = format === "u4" ? 31 : 0;
  const scales = new Float32Array(words.map((word) => word & ~zeroBits).buffer);
  const out = new Float32Array(rows * cols);
  for (let i = 0; i < out.length; i++) {
    const [row, k] = [Math.floor(i / cols), i % cols];
    const group = row * all + weights + Math.floor(k / GROUP);
    const u = (words[row * all + Math.floor(k * bits / 32)] ?? 0) >>> k * bits % 32;
    const value = (table[u & (1 << bits) - 1] ?? 0) - ((words[group] ?? 0) & zeroBits);
    out[i] = value * (scales[group] ?? 0);
  }
  return out;
}

/** A group's word has two f16 scales, one for each half of the group, to be multiplied by NVFP4_UNIT. */
function nvfp4Values(words: Uint32Array<ArrayBuffer>, cols: number): Float32Array<ArrayBuffer> {
  const { weights, all } = rowWords({ format: "nvfp4", cols });
  const scales = new Float16Array(words.buffer, words.byteOffset, 2 * words.length);
  return Float32Array.from({ length: words.length / all * cols }, (_, i) => {
    const [row, k] = [Math.floor(i / cols), i % cols];
    const code = (words[row * all + (k >> 3)] ?? 0) >>> 4 * (k % 8) & 15;
    const scale = scales[2 * (row * all + weights) + (k >> 4)] ?? 0;
    return (E2M1[code] ?? 0) * scale * NVFP4_UNIT;
  });
}

/** NVFP4 scales are stored divided by this: f16 then has all bits of the scales of weights from 2^-24 to 2^6. */
export const NVFP4_UNIT: number = 2 ** -12;

/** Numbers of 4 bits, e2m1: a sign, 2 bits of exponent and one of mantissa. */
export const E2M1: readonly number[] = [
  0,
  0.5,
  1,
  1.5,
  2,
  3,
  4,
  6,
  -0,
  -0.5,
  -1,
  -1.5,
  -2,
  -3,
  -4,
  -6,
];

/** The number that each stored code stands for, before zero point and scale are applied. */
function valueTable(format: Prequantized): Float32Array {
  switch (format) {
    case "u4":
      return Float32Array.from({ length: 16 }, (_, u) => u);
    case "mxfp4":
    case "nvfp4":
      return Float32Array.from(E2M1);
    case "i8":
      return Float32Array.from({ length: 256 }, (_, u) => u - 128);
    case "f8":
      return Float32Array.from({ length: 256 }, (_, byte) => e4m3(byte));
  }
}
