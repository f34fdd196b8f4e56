import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import { tuning } from "../../gpu/tuning.ts";
import {
  type FloatFormat,
  isInteger,
  isPrequantized,
  isQuantized,
  type Quantization,
  WEIGHT_BYTES,
} from "../../gpu/weight_format.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { widen } from "../files/widen.ts";
import { placeBlocks, widenBlocks } from "./block_rows.ts";
import { checkpointShapes, formatOf } from "./checkpoint_shapes.ts";
import { readInOrder } from "./even_rows.ts";
import { copyRows, widenRows } from "./float_rows.ts";
import { dequantizeGrouped, placeGrouped } from "./grouped_rows.ts";
import type { WeightSource } from "./loader.ts";
import type { Quantizer } from "./quantizer.ts";
import { batches, type Segment } from "./shards.ts";
import { type RowStream, UPLOAD_BLOCK, uploader, write } from "./upload.ts";

export interface CheckpointWeightsOptions {
  /** Called after each read with its number of bytes, for a progress bar: a tensor that is used is read once. */
  readonly onBytes?: (bytes: number) => void;
  /** Quantizes matrices, if their width allows it. */
  readonly quantize?: { readonly to: Quantization; readonly quantizer: Quantizer };
  /** Most lanes of a matrix; default: the adapter's. */
  readonly lanes?: number;
}

/** The weights of a checkpoint, streamed from its files. */
export function checkpointWeights(
  gpu: Gpu,
  checkpoint: Checkpoint,
  options: CheckpointWeightsOptions = {},
): WeightSource {
  const { onBytes = () => {}, quantize, lanes = tuning(gpu.info.software).lanes } = options;
  const read: Checkpoint["read"] = (tensor, at, into) => {
    readInOrder(checkpoint, tensor, at, into);
    onBytes(into.length);
  };
  const stream: RowStream = {
    checkpoint: { read },
    upload: uploader(gpu),
    block: new Uint8Array(UPLOAD_BLOCK),
  };

  /** Uploads rows in the format `to`: unchanged, or as float32 if tensors of several types are stacked. */
  function bring(
    segments: readonly Segment[],
    outs: readonly Operand[],
    { to, cols }: { readonly to: FloatFormat; readonly cols: number },
  ) {
    for (const segment of segments) {
      const own = formatOf(segment.tensor);
      if (own === to) copyRows(stream, segment, outs, cols * WEIGHT_BYTES[to]);
      else if (isPrequantized(own)) dequantizeGrouped(stream, [segment], outs, { from: own, cols });
      else if (isInteger(own)) widenBlocks(stream, [segment], outs, { from: own, cols });
      else widenRows(stream, segment, outs, { from: own, cols });
    }
  }

  function pack(matrix: Matrix, segments: readonly Segment[], from: FloatFormat) {
    const { quantizer } = quantize as NonNullable<typeof quantize>;
    const rowBytes = matrix.cols * WEIGHT_BYTES[from];
    for (const batch of batches(segments, quantizer.rows(rowBytes))) {
      bring(staged(batch), [{ buffer: quantizer.staging }], { to: from, cols: matrix.cols });
      quantizer.pack(matrix, batch, from);
    }
  }

  return {
    ...checkpointShapes(checkpoint, { quantize: quantize?.to, lanes }),
    fill(matrix, segments, from) {
      const { format, cols, shards } = matrix;
      if (format === from && isPrequantized(from)) {
        return placeGrouped(stream, matrix, segments, from);
      }
      if (format === from && isInteger(from)) return placeBlocks(stream, matrix, segments, from);
      if (format !== from && !isQuantized(from)) return pack(matrix, segments, from);
      const to = isQuantized(from) ? "f32" : from;
      bring(segments, shards.map(({ operand }) => operand), { to, cols });
    },
    vector(out, tensors, offset, factor = 1) {
      const values = tensors.flatMap((tensor) => {
        const bytes = new Uint8Array(tensor.size);
        read(tensor, 0, bytes);
        return [...widen(bytes, tensor.dtype)];
      });
      write(gpu, out, Float32Array.from(values, (value) => offset + factor * value));
    },
    ids: (out, values) => write(gpu, out, values()),
  };
}

/** The segments, placed one after the other in a staging buffer. */
function staged(segments: readonly Segment[]): Segment[] {
  let at = 0;
  return segments.map((segment) => {
    const shardRow = at;
    at += segment.rows;
    return { ...segment, shard: 0, shardRow };
  });
}
