import {
  type Dispatch,
  dispatch,
  type Kernel,
  labelOf,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { FloatFormat, Quantization } from "../../src/gpu/weight_format.ts";
import { kernelOf } from "../shader.ts";

const WORKGROUP = 64;

interface QuantizeParameters {
  /** Format of the rows. */
  readonly weights: FloatFormat;
  /** What they are packed as. */
  readonly pack: Quantization;
}

type QuantizeKernel = Kernel<"weights" | "rows" | "words" | "packed_scales", "COLS" | "LANES">;

function quantizeKernel(from: FloatFormat, to: Quantization): QuantizeKernel {
  const name = `quantize_${from}_${to}`;
  return kernelOf<QuantizeParameters>("matmul/quantize")({ weights: from, pack: to }, {
    name,
    bindings: ["weights", "rows", "words", "packed_scales"],
    constants: ["COLS", "LANES"],
  });
}

/**
 * Records the packing of float rows into shard `shard` of a quantized matrix. Its scales are at
 * most 65504: weights beyond 127 (q8) or 8 (q4) times that are clipped.
 *
 * @param buffers.source [shape.rows, cols] of the format `shape.from`.
 * @param buffers.rows u32 [shape.rows]: the row of the shard that each source row becomes; bound
 * to that length.
 */
export function quantize(
  buffers: { readonly source: Operand; readonly rows: Operand },
  matrix: Matrix,
  shape: { readonly shard: number; readonly rows: number; readonly from: FloatFormat },
): Dispatch {
  const { format, cols, lanes } = matrix;
  const { operand, scales } = matrix.shards[shape.shard] ?? {};
  if (format !== "q8" && format !== "q4" || !operand || !scales) {
    throw new Error(`${format} is not packed`);
  }
  return dispatch(quantizeKernel(shape.from, format), {
    buffers: {
      weights: buffers.source,
      rows: buffers.rows,
      words: operand,
      packed_scales: scales,
    },
    constants: { COLS: cols, LANES: lanes },
    workgroups: [Math.ceil(shape.rows * cols / 64 / WORKGROUP)],
    label: `quantize ${labelOf(operand)}`,
  });
}
