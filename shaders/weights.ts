import type { WeightFormat } from "../src/gpu/matrix.ts";
import bf16 from "./weights_bf16.wgsl" with { type: "text" };
import bytes from "./weights_bytes.wgsl" with { type: "text" };
import f16 from "./weights_f16.wgsl" with { type: "text" };
import f32 from "./weights_f32.wgsl" with { type: "text" };
import f8 from "./weights_f8.wgsl" with { type: "text" };
import i8 from "./weights_i8.wgsl" with { type: "text" };
import q4 from "./weights_q4.wgsl" with { type: "text" };
import q8 from "./weights_q8.wgsl" with { type: "text" };
import u4 from "./weights_u4.wgsl" with { type: "text" };

/**
 * WGSL that binds `weights` and declares `Raw`, `load_raw` and an `eight_<c>` for each of CHUNKS, by
 * format. The quantized ones bind `scales` too and need the constant `LANES`.
 */
export const WEIGHTS: Readonly<Record<WeightFormat, string>> = {
  bf16,
  f16,
  f32,
  q8,
  q4,
  u4,
  i8: [bytes, i8].join("\n"),
  f8: [bytes, f8].join("\n"),
};
