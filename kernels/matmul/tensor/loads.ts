/** How matmuls on matrix units bring weights of each format into workgroup memory: as f16. */
import {
  BLOCK_VEC8S,
  isPrequantized,
  isQuantized,
  type Matrix,
  type Precision,
} from "../../../src/gpu/matrix.ts";

/** Whether weights are f16 already, and numbers of f16 that stand for one of x, less one. */
interface FormatCounts {
  readonly HALVED: boolean;
  readonly LOW: 0 | 1;
}

/** What a kernel's text depends on. */
export interface UnitsLoad {
  /** Part of the kernel's name; "" for bf16. */
  readonly name: string;
  /** Those of matmul/tensor/load.wgsl. */
  readonly parameters: FormatCounts & {
    readonly load: "whole" | "floats" | "q8" | "q4";
    readonly weights?: Matrix["format"];
    readonly VEC8S: number;
  };
  /** Bound last. */
  readonly bindings: readonly string[];
  readonly constants: readonly string[];
}

/** Of bf16 weights, or of those that `halveWeights` made of them, and of quantized ones. */
export function unitsLoad(
  format: Matrix["format"],
  counts: FormatCounts = formatCounts(false, "f32"),
): UnitsLoad {
  const VEC8S = BLOCK_VEC8S[format];
  if (!isQuantized(format)) {
    return {
      name: "",
      parameters: { load: "whole", VEC8S, ...counts },
      bindings: [],
      constants: [],
    };
  }
  const load = isPrequantized(format) ? "floats" : format;
  const parameters = { load, weights: format, VEC8S, ...counts } as const;
  return { name: `_${format}`, parameters, bindings: ["scales"], constants: ["LANES"] };
}

/** Parameters of to_f16.wgsl, and of x as one f16 or as two. */
export function formatCounts(halved: boolean, precision: Precision): FormatCounts {
  return { HALVED: halved, LOW: precision === "f16" ? 0 : 1 };
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
  // Weights that are rounded to one f16 are not worth more of x.
  const precision = isQuantized(format) ? "f16" : asked;
  const load = unitsLoad(format, formatCounts(halved, precision));
  return { ...load, name: `${kindOf(halved, precision)}${load.name}` };
}
