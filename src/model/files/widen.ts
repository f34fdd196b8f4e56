import type { DType } from "./safetensors.ts";

/** F32, F16 or BF16 bytes (little endian) as f32; exact. */
export function widen(bytes: Uint8Array, dtype: DType): Float32Array<ArrayBuffer> {
  if (dtype === "F32") return new Float32Array(bytes.slice().buffer);
  const halves = new Uint16Array(bytes.slice().buffer);
  if (dtype === "F16") return Float32Array.from(new Float16Array(halves.buffer));
  const out = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) out[i] = (halves[i] ?? 0) << 16;
  return new Float32Array(out.buffer);
}
