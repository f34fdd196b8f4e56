/** The shapes that tensors get on the GPU. */
import { UsageError } from "../../errors.ts";
import {
  isQuantizable,
  isQuantized,
  lanesFor,
  type Quantization,
  type WeightFormat,
} from "../../gpu/weight_format.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { DType, TensorInfo } from "../files/safetensors.ts";
import type { Shape, StoredFormat, WeightShapes } from "./loader.ts";

const FORMAT: Partial<Record<DType, StoredFormat>> = {
  BF16: "bf16",
  F16: "f16",
  F32: "f32",
  GROUPED_U4: "u4",
  GROUPED_I8: "i8",
  GROUPED_F8: "f8",
  GROUPED_MXFP4: "mxfp4",
  GROUPED_NVFP4: "nvfp4",
  GROUPED_Q8: "q8",
  GROUPED_Q4: "q4",
};

/**
 * The shapes that a checkpoint's tensors get on the GPU, from its headers alone.
 *
 * @param options.lanes most lanes of a matrix.
 */
export function checkpointShapes(
  checkpoint: Pick<Checkpoint, "name">,
  { quantize, lanes }: {
    readonly quantize: Quantization | undefined;
    readonly lanes: number;
  },
): WeightShapes {
  function shapeOf<Format extends WeightFormat>(
    { format: from, cols }: Pick<Shape<StoredFormat>, "format" | "cols">,
    format: Format,
  ): Shape<Format> {
    return { from, format, cols, lanes: lanesFor(format, cols, lanes) };
  }

  return {
    matrixShape(tensors) {
      const shared = sharedShape(checkpoint, tensors);
      const { format, cols } = shared;
      const grouped = tensors.some((tensor) => isQuantized(formatOf(tensor)));
      const quantizable = !grouped && isQuantizable(cols);
      return shapeOf(shared, quantize && quantizable ? quantize : format);
    },
    tableShape(...tensors) {
      const shared = sharedShape(checkpoint, tensors);
      return shapeOf(shared, isQuantized(shared.format) ? "f32" : shared.format);
    },
  };
}

/** The format of a tensor that can be loaded. */
export function formatOf({ dtype }: TensorInfo): StoredFormat {
  return FORMAT[dtype] as StoredFormat;
}

/** Width and format of tensors in one matrix; if their formats differ, float32, which holds all of them exactly. */
function sharedShape(
  checkpoint: Pick<Checkpoint, "name">,
  tensors: readonly TensorInfo[],
): { readonly format: StoredFormat; readonly cols: number } {
  const first = tensors[0] as TensorInfo;
  const cols = first.shape[1] as number;
  for (const { name, dtype, dtypeName, shape } of tensors) {
    if (FORMAT[dtype] && shape[1] === cols) continue;
    throw new UsageError(
      `Cannot load "${checkpoint.name}": tensor "${name}" is ${dtypeName} [${shape}], ` +
        `it must match "${first.name}", ${first.dtypeName} [${first.shape}]`,
    );
  }
  const format = formatOf(first);
  const shared = tensors.every((tensor) => formatOf(tensor) === format);
  return { format: shared ? format : "f32", cols };
}
