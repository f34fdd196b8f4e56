/** Rows of quantized checkpoints as float32, for what is looked up or read in two ways. */
import { GROUP, type Prequantized, WEIGHT_BYTES } from "../../../gpu/matrix.ts";
import { rowWords } from "./modules.ts";

/**
 * The numbers of rows as `ReadRows` fills them, [rows, cols]: what kernels/lib/weights_u4.wgsl, _i8, _f8 and
 * _mxfp4 compute.
 */
export function dequantized(
  words: Uint32Array<ArrayBuffer>,
  { format, cols }: { readonly format: Prequantized; readonly cols: number },
): Float32Array<ArrayBuffer> {
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

/** What each stored integer stands for before its zero and scale. */
function valueTable(format: Prequantized): Float32Array {
  if (format === "u4") return Float32Array.from({ length: 16 }, (_, u) => u);
  if (format === "mxfp4") return Float32Array.from(E2M1);
  if (format === "i8") return Float32Array.from({ length: 256 }, (_, u) => u - 128);
  return Float32Array.from({ length: 256 }, (_, byte) => {
    const [exponent, mantissa] = [byte >>> 3 & 15, byte & 7];
    const size = exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10);
    return byte < 128 ? size : -size;
  });
}
