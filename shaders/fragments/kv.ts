import type { KvDtype } from "../../src/gpu/kv.ts";
import loadBf16 from "./kv_load_bf16.wgsl" with { type: "text" };
import loadF16 from "./kv_load_f16.wgsl" with { type: "text" };
import loadF32 from "./kv_load_f32.wgsl" with { type: "text" };

/**
 * WGSL of readers, by dtype: `load_key`, `load_value` and `eight` over the bindings `keys` and
 * `values`, which the kernel declares as array<vec4<u32>>, and its constant EIGHTS, HEAD_DIM / 8.
 */
export const KV_LOAD: Readonly<Record<KvDtype, string>> = {
  bf16: loadBf16,
  f16: loadF16,
  f32: loadF32,
};
