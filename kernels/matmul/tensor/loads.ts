/** How matmuls on matrix units bring weights of each format into workgroup memory: as f16. */
import {
  BLOCK_VEC8S,
  isFp4,
  isPrequantized,
  isQuantized,
  type Matrix,
  type Precision,
} from "../../../src/gpu/matrix.ts";

/** What lib/f16_weights.wgsl takes. */
export interface LoadParameters {
  /**
   * bf16 or f16, formats of checkpoints that are quantized already, those of 4-bit floats, or one that was packed here.
   */
  readonly load: "whole" | "floats" | "fp4" | "q8" | "q4";
  /** The format, of quantized weights: lib/weights_FORMAT. */
  readonly weights?: Matrix["format"];
  /** Vec8s of a packed block. */
  readonly VEC8S: number;
  /** Whether weights are f16 already. */
  readonly HALVED: boolean;
  /** Numbers of f16 that stand for one of x, less one. */
  readonly LOW: 0 | 1;
}

/** What of a kernel depends on the weights' format and on whether x is one f16 or two. */
export function formatOf(
  { matrix: { format = "bf16" }, halved = false, precision: asked = "f32" }: {
    readonly matrix: Partial<Pick<Matrix, "format">>;
    readonly halved?: boolean;
    readonly precision?: Precision | undefined;
  },
): { /** Part of its name. */ readonly name: string; readonly parameters: LoadParameters } {
  const quantized = isQuantized(format);
  // Weights that are rounded to one f16 are not worth more of x.
  const precision = quantized ? "f16" : asked;
  const parts = [
    ...precision === "f16" ? ["_f16"] : [],
    ...halved ? ["_halved"] : [],
    ...quantized ? [`_${format}`] : [],
  ];
  return {
    name: parts.join(""),
    parameters: {
      load: loadOf(format),
      ...quantized ? { weights: format } : {},
      VEC8S: BLOCK_VEC8S[format],
      HALVED: halved,
      LOW: precision === "f16" ? 0 : 1,
    },
  };
}

function loadOf(format: Matrix["format"]): LoadParameters["load"] {
  if (!isQuantized(format)) return "whole";
  if (isFp4(format)) return "fp4";
  return isPrequantized(format) ? "floats" : format;
}
