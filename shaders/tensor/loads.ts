/** How matmuls on matrix units bring weights of each format into workgroup memory: as f16. */
import type { Slots } from "../../src/gpu/link.ts";
import { BLOCK_VEC8S, isPrequantized, isQuantized, type Matrix } from "../../src/gpu/matrix.ts";

/** What a kernel's text depends on. */
export interface UnitsLoad {
  /** Part of the kernel's name; "" for bf16. */
  readonly name: string;
  /** `load` of matmul_tensor.wgsl. */
  readonly slots: Slots;
  readonly counts: Readonly<Record<string, number>> & { readonly VEC8S: number };
  /** Bound last. */
  readonly bindings: readonly string[];
  readonly constants: readonly string[];
}

/** Of bf16 weights, or of those that `halveWeights` made of them, and of quantized ones. */
export function unitsLoad(format: Matrix["format"]): UnitsLoad {
  const counts = { VEC8S: BLOCK_VEC8S[format] };
  if (!isQuantized(format)) {
    return { name: "", slots: { load: "tensor/load/whole" }, counts, bindings: [], constants: [] };
  }
  const slots = isPrequantized(format)
    ? { load: "tensor/load/floats", floats: `weights/weights_${format}` }
    : { load: `tensor/load/${format}` };
  return { name: `_${format}`, slots, counts, bindings: ["scales"], constants: ["LANES"] };
}
