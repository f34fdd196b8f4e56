/**
 * Permutes rows from the order of k to lane order, in which the lanes of a matmul read them; see
 * kernels/matmul/quantize.wgsl.
 */
import type { Matrix } from "../../../gpu/matrix.ts";
import { BLOCK_VEC8S, isFp4, type Prequantized } from "../../../gpu/weight_format.ts";
import { rowWords } from "./modules.ts";

/** Permutes `rows`, as `ReadRows` fills them, to lane order, and separates words and scales. */
export type ToLanes = (rows: Uint32Array) => {
  readonly words: Uint32Array<ArrayBuffer>;
  readonly scales: Uint32Array<ArrayBuffer>;
};

/** Computes the permutation tables of a matrix once, and returns the function that applies them to rows. */
export function toLanes(
  { cols, lanes, format }: Pick<Matrix, "cols" | "lanes"> & { readonly format: Prequantized },
): ToLanes {
  const { weights, all } = rowWords({ format, cols });
  const wordPlaces = wordOrder(cols, lanes, format);
  const groupPlaces = groupOrder(cols, lanes, format);
  const stored = isFp4(format) ? fp4Word : (word: number) => word;
  return (rows) => {
    const count = rows.length / all;
    const words = new Uint32Array(count * weights);
    const scales = new Uint32Array(count * groupPlaces.length);
    for (let row = 0; row < count; row++) {
      const [from, to] = [row * all, row * weights];
      for (let i = 0; i < weights; i++) {
        words[to + (wordPlaces[i] ?? 0)] = stored(rows[from + i] ?? 0);
      }
      const groups = groupPlaces.length;
      for (let g = 0; g < groups; g++) {
        scales[row * groups + (groupPlaces[g] ?? 0)] = rows[from + weights + g] ?? 0;
      }
    }
    return { words, scales: format === "mxfp4" ? exponents(scales) : scales };
  };
}

/** Bit positions, in half a word, of the lowest bit and of the sign of the numbers 2 j and 2 j + 1. */
const FP4_PLACES = [[9, 15], [6, 12], [3, 14], [0, 13]] as const;

/** The word with the bits of two numbers, by the byte that has both. */
const FP4_BYTES = FP4_PLACES.map(([lowest, sign]) =>
  Uint32Array.from({ length: 256 }, (_, byte) => {
    const half = (bits: number) => (bits & 7) << lowest | (bits >> 3) << sign;
    return half(byte & 15) | half(byte >> 4) << 16;
  })
);

/** Rearranges the bits of eight 4-bit numbers, the first lowest, as kernels/lib/e2m1.wgsl expects them. */
function fp4Word(word: number): number {
  const [a, b, c, d] = FP4_BYTES as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];
  const [p, q] = [(a[word & 255] ?? 0) | (b[word >> 8 & 255] ?? 0), c[word >> 16 & 255] ?? 0];
  return (p | q | (d[word >>> 24] ?? 0)) >>> 0;
}

/** The exponents of f32 powers of two, a byte each, which kernels/lib/weights_mxfp4.wgsl reads. */
function exponents(scales: Uint32Array): Uint32Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 * Math.ceil(scales.length / 4));
  for (let i = 0; i < scales.length; i++) bytes[i] = (scales[i] ?? 0) >>> 23;
  return new Uint32Array(bytes.buffer);
}

/** Place of each word of a row: vec8 e is number c of block j of lane e % lanes. */
function wordOrder(cols: number, lanes: number, format: Prequantized): Uint32Array {
  const vec8s = BLOCK_VEC8S[format];
  const wordsPerVec8 = 4 / vec8s;
  return Uint32Array.from({ length: cols / 8 * wordsPerVec8 }, (_, i) => {
    const vec8 = Math.floor(i / wordsPerVec8);
    const turn = Math.floor(vec8 / lanes); // j * vec8s + c
    const block = Math.floor(turn / vec8s) * lanes + vec8 % lanes;
    return 4 * block + turn % vec8s * wordsPerVec8 + i % wordsPerVec8;
  });
}

/** Place of each group's word in a row. */
function groupOrder(cols: number, lanes: number, format: Prequantized): Uint32Array {
  const vec8s = BLOCK_VEC8S[format];
  const quads = Math.max(1, lanes / 4);
  return Uint32Array.from({ length: cols / 32 }, (_, group) => {
    const turn = Math.floor(group / quads);
    return (Math.floor(turn / vec8s) * quads + group % quads) * vec8s + turn % vec8s;
  });
}
