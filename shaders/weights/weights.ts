import type { FloatFormat } from "../../src/gpu/matrix.ts";
import { shader } from "../shader.ts";

/**
 * WGSL that binds `weights` and declares `PackedBlock`, `load_block` and `vec8_0`, by format: for kernels that join
 * their texts themselves.
 */
export const WEIGHTS: Readonly<Record<FloatFormat, string>> = {
  bf16: shader("weights/weights_bf16"),
  f16: shader("weights/weights_f16"),
  f32: shader("weights/weights_f32"),
};
