/** The type in which keys and values are stored; kernels/lib/ reads and writes each. */
export type KvDtype = "f32" | "f16" | "bf16";

/** Bytes of one element. */
export const KV_BYTES: Readonly<Record<KvDtype, number>> = { f32: 4, f16: 2, bf16: 2 };
