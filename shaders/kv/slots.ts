import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Slots } from "../../src/gpu/link.ts";

/** Slot of kernels that read keys and values: `load_key`, `load_value`, `vec8_of`. */
export function loadSlots(dtype: KvDtype): Slots {
  return { kv_load: `kv/load_${dtype}` };
}

/** Slots of kernels that write a rope pair of a row: `store_key`, `store_value`. */
export function storeSlots(dtype: KvDtype): Slots {
  return { kv_store: `kv/store_${dtype === "f32" ? dtype : "words"}`, ...packSlots(dtype) };
}

/** Slots of kernels that write a vec8 of a row, and read half of one: `put_key`, `put_value`, `load_half`, `half_of`. */
export function putSlots(dtype: KvDtype): Slots {
  const words = dtype !== "f32";
  return {
    kv_put: `kv/put_${words ? "words" : dtype}`,
    kv_half: `kv/half_${words ? "packed" : dtype}`,
    ...packSlots(dtype),
  };
}

function packSlots(dtype: KvDtype): Slots {
  return dtype === "f32" ? {} : { kv_pack: `kv/pack_${dtype}` };
}
