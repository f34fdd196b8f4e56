import type { WeightFormat } from "../../src/gpu/matrix.ts";
import bf16 from "./weights_bf16.wgsl" with { type: "text" };
import bytes from "./weights_bytes.wgsl" with { type: "text" };
import f16 from "./weights_f16.wgsl" with { type: "text" };
import f32 from "./weights_f32.wgsl" with { type: "text" };
import f8 from "./weights_f8.wgsl" with { type: "text" };
import i8 from "./weights_i8.wgsl" with { type: "text" };
import integers from "./weights_integers.wgsl" with { type: "text" };
import q4 from "./weights_q4.wgsl" with { type: "text" };
import q8 from "./weights_q8.wgsl" with { type: "text" };
import u4 from "./weights_u4.wgsl" with { type: "text" };

/**
 * WGSL that binds `weights` and declares `Raw`, `load_raw` and an `eight_<c>` for each of CHUNKS, by
 * format. The quantized ones bind `scales` too and need the constant `LANES`; q8 and q4 have
 * `whole_<c>` and `packed_<c>` besides.
 */
export const WEIGHTS: Readonly<Record<WeightFormat, string>> = {
  bf16,
  f16,
  f32,
  q8: [integers, q8].join("\n"),
  q4: [integers, q4].join("\n"),
  u4,
  i8: [bytes, i8].join("\n"),
  f8: [bytes, f8].join("\n"),
};
