/** How matmuls on matrix units bring weights of each format into workgroup memory: as f16. */
import type { Slots } from "../../src/gpu/link.ts";
import {
  BLOCK_VEC8S,
  isPrequantized,
  isQuantized,
  type Matrix,
  type Precision,
} from "../../src/gpu/matrix.ts";

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

/** Counts of tensor/to_f16, and of x as one f16 or as two. */
export function formatCounts(halved: boolean, precision: Precision): Record<string, number> {
  const rounded = precision === "f16";
  return {
    ...{ HALVED: Number(halved), CONVERTED: Number(!halved) },
    ...{ LOW: Number(!rounded), ROUNDED: Number(rounded) },
  };
}

/** Part of a kernel's name. */
export function kindOf(halved: boolean, precision: Precision): string {
  return `${precision === "f16" ? "_f16" : ""}${halved ? "_halved" : ""}`;
}

/** What of a kernel's text depends on the weights' format and on whether x is one f16 or two. */
export function formatOf(
  { matrix: { format = "bf16" }, halved = false, precision: asked = "f32" }: {
    readonly matrix: Partial<Pick<Matrix, "format">>;
    readonly halved?: boolean;
    readonly precision?: Precision | undefined;
  },
): UnitsLoad {
  const load = unitsLoad(format);
  // Weights that are rounded to one f16 are not worth more of x.
  const precision = isQuantized(format) ? "f16" : asked;
  return {
    ...load,
    name: `${kindOf(halved, precision)}${load.name}`,
    counts: { ...load.counts, ...formatCounts(halved, precision) },
  };
}
