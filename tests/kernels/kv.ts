import type { KvDtype } from "../../src/gpu/kv.ts";
import { toBf16 } from "../../src/model/config/rounded_buffers.ts";

/** `values` rounded to nearest even as `dtype` keeps them. */
export function kept(dtype: KvDtype, values: Float32Array): Float32Array {
  if (dtype === "f32") return values;
  if (dtype === "f16") return Float32Array.from(Float16Array.from(values));
  return values.map(toBf16);
}

/**
 * Rows of `headDim` values as the pages keep them: f32 in order; of 16 bits, word w is
 * (value w, value w + headDim / 2), low half first.
 */
export function packedKv(dtype: KvDtype, values: Float32Array, headDim: number): Uint32Array {
  const exact = kept(dtype, values).slice();
  if (dtype === "f32") return new Uint32Array(exact.buffer);
  const words = new Uint32Array(exact.buffer);
  const halves = dtype === "f16"
    ? new Uint16Array(Float16Array.from(exact).buffer)
    : Uint16Array.from(words, (word) => word >>> 16);
  const half = headDim / 2;
  return Uint32Array.from({ length: values.length / 2 }, (_, at) => {
    const low = Math.floor(at / half) * headDim + at % half;
    return ((halves[low] ?? 0) | (halves[low + half] ?? 0) << 16) >>> 0;
  });
}

/** What `packedKv` packed. */
export function unpackedKv(dtype: KvDtype, words: Uint32Array, headDim: number): Float32Array {
  if (dtype === "f32") return new Float32Array(words.slice().buffer);
  const halves = new Uint16Array(words.slice().buffer);
  const values = dtype === "f16"
    ? Float32Array.from(new Float16Array(halves.buffer))
    : new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
  return values.map((_, at) => {
    const [row, dim] = [Math.floor(at / headDim) * headDim, at % headDim];
    const w = dim % (headDim / 2);
    return values[row + 2 * w + (dim < headDim / 2 ? 0 : 1)] ?? NaN;
  });
}
