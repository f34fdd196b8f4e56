import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { Table } from "../../src/gpu/matrix.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { kernelOf } from "../shader.ts";

interface EmbedParameters {
  /** Format of the table. */
  readonly weights: FloatFormat;
}

function embedKernel(
  format: FloatFormat,
): Kernel<
  "weights" | "rows" | "out",
  "COLS" | "OUT_COLS" | "SHARD_FIRST" | "SHARD_ROWS" | "SCALE"
> {
  return kernelOf<EmbedParameters>("norm/embed")({ weights: format }, {
    name: `embed_${format}`,
    bindings: ["weights", "rows", "out"],
    constants: ["COLS", "OUT_COLS", "SHARD_FIRST", "SHARD_ROWS", "SCALE"],
  });
}

const KERNELS = { bf16: embedKernel("bf16"), f16: embedKernel("f16"), f32: embedKernel("f32") };

/** Records `out[r, 0..cols) = scale E[token of row r]`: a dispatch a shard; out is [count, outCols]. */
export function embed(
  buffers: { readonly matrix: Table; readonly rows: Operand; readonly out: Operand },
  shape: {
    readonly count: number;
    readonly outCols?: number;
    /** Default 1. */
    readonly scale?: number;
    readonly label: string;
  },
): Dispatch[] {
  const { matrix, rows, out } = buffers;
  return matrix.shards.map((shard) =>
    dispatch(KERNELS[matrix.format], {
      buffers: { weights: shard.operand, rows, out },
      constants: {
        COLS: matrix.cols,
        OUT_COLS: shape.outCols ?? matrix.cols,
        SHARD_FIRST: shard.first,
        SHARD_ROWS: shard.rows,
        SCALE: shape.scale ?? 1,
      },
      workgroups: [Math.ceil(matrix.cols / 8 / 32), shape.count],
      label: shape.label,
      // Tokens are assumed to be spread evenly over the shards.
      work: {
        bytes: shape.count / matrix.rows * (bytesOf(shard.operand) + 4 * shard.rows * matrix.cols),
        flops: 0,
      },
    })
  );
}
