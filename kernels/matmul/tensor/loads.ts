/** How matmuls on matrix units bring weights of each format into workgroup memory: as f16. */
import type { Precision } from "../../../src/gpu/matrices_on_units.ts";
import type { Matrix } from "../../../src/gpu/matrix.ts";
import { BLOCK_VEC8S, isFp4, isPrequantized, isQuantized } from "../../../src/gpu/weight_format.ts";

/** Parameters of lib/f16_weights.wgsl. */
export interface LoadParameters {
  /**
   * How weights are loaded: whole is bf16 or f16; floats are formats of prequantized checkpoints, fp4 those of 4-bit
   * floats; q8 and q4 were packed by this engine.
   */
  readonly load: "whole" | "floats" | "fp4" | "q8" | "q4";
  /** The format, of quantized weights: lib/weights_FORMAT. */
  readonly weights?: Matrix["format"];
  /** Vec8s of a packed block. */
  readonly VEC8S: number;
  /** Whether weights are f16 already. */
  readonly HALVED: boolean;
  /** f16 numbers that represent one number of x, minus one. */
  readonly LOW: 0 | 1;
}

/**
 * The parts of a kernel's name and parameters that depend on the weights' format and on whether x is one f16 or two.
 */
export function formatOf(
  { matrix: { format = "bf16" }, halved = false, precision: asked = "f32" }: {
    readonly matrix: Partial<Pick<Matrix, "format">>;
    readonly halved?: boolean;
    readonly precision?: Precision | undefined;
  },
): { /** Part of its name. */ readonly name: string; readonly parameters: LoadParameters } {
  const quantized = isQuantized(format);
  // Quantized weights are rounded to one f16, so more precision of x would not pay.
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
