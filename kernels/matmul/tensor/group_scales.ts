import { type Dispatch, dispatch, type Kernel, type Operand } from "../../../src/gpu/kernel.ts";
import type { Matrix } from "../../../src/gpu/matrix.ts";
import {
  GROUP,
  isInteger,
  type Prequantized,
  type Quantization,
  scaleBytes,
} from "../../../src/gpu/weight_format.ts";
import { kernelOf } from "../../shader.ts";
import { ROWS_ACROSS } from "./weight_scales.ts";

/** The largest size of a weight divided by its group's scale; for u4 after subtracting a zero of 0 to 16. */
const MAX: Readonly<Record<Quantization | Prequantized, number>> = {
  q8: 127,
  q4: 8,
  u4: 16,
  i8: 128,
  f8: 448,
  mxfp4: 6,
  nvfp4: 6 * 2 ** -12, // f16 scales are over 2^-12
};

interface GroupScalesParameters {
  /** Whether the scale of a group is a byte, the exponent of a power of two. */
  readonly EXPONENTS: boolean;
}

function groupScalesKernel(EXPONENTS: boolean): Kernel<"groups" | "scales"> {
  return kernelOf<GroupScalesParameters>("matmul/tensor/group_scales")({ EXPONENTS }, {
    name: EXPONENTS ? "group_scales_exponents" : "group_scales",
    bindings: ["groups", "scales"],
  });
}

/**
 * Records the scales of the rows of a quantized shard, f32 [rows]: powers of two, those of weightScales if a
 * row has a weight as large as its format allows, and smaller ones otherwise.
 *
 * @param buffers.groups `Shard.scales`.
 */
export function groupScales(
  buffers: { readonly groups: Operand; readonly scales: Operand },
  { format, rows, cols }: Pick<Matrix, "rows" | "cols"> & { readonly format: keyof typeof MAX },
): Dispatch {
  const exponents = format === "mxfp4";
  return dispatch(groupScalesKernel(exponents), {
    buffers,
    constants: {
      WORDS: exponents ? cols / GROUP : scaleBytes(format, cols) / 4,
      MAX: MAX[format],
      PAIRS: Number(isInteger(format) || format === "nvfp4"),
      ROWS_ACROSS,
    },
    workgroups: [Math.min(rows, ROWS_ACROSS), Math.ceil(rows / ROWS_ACROSS)],
    label: "group_scales",
  });
}
