import type { WeightFormat } from "../src/gpu/matrix.ts";
import bf16 from "./weights_bf16.wgsl" with { type: "text" };
import f16 from "./weights_f16.wgsl" with { type: "text" };
import f32 from "./weights_f32.wgsl" with { type: "text" };

/** WGSL that binds `weights` and declares `load_raw` and `eight_0`, by format. */
export const WEIGHTS: Readonly<Record<WeightFormat, string>> = { bf16, f16, f32 };
