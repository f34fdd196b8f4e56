import type { KvDtype } from "../../src/gpu/kv.ts";
import loadBf16 from "./kv_load_bf16.wgsl" with { type: "text" };
import loadF16 from "./kv_load_f16.wgsl" with { type: "text" };
import loadF32 from "./kv_load_f32.wgsl" with { type: "text" };
import storeBf16 from "./kv_store_bf16.wgsl" with { type: "text" };
import storeF16 from "./kv_store_f16.wgsl" with { type: "text" };
import storeF32 from "./kv_store_f32.wgsl" with { type: "text" };

/**
 * WGSL of readers, by dtype: `load_key`, `load_value` and `eight` over the bindings `keys` and
 * `values`, which the kernel declares as array<vec4<u32>>, and its constant EIGHTS, HEAD_DIM / 8.
 */
export const KV_LOAD: Readonly<Record<KvDtype, string>> = {
  bf16: loadBf16,
  f16: loadF16,
  f32: loadF32,
};

/** WGSL of writers: `store_key` and `store_value` over array<u32> and the constant HEAD_DIM. */
export const KV_STORE: Readonly<Record<KvDtype, string>> = {
  bf16: storeBf16,
  f16: storeF16,
  f32: storeF32,
};
