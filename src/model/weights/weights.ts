import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import {
  type FloatFormat,
  isPrequantized,
  isQuantizable,
  lanesFor,
  type Matrix,
  type Prequantized,
  type Quantization,
  scaleBytes,
  type Shard,
  tuning,
  WEIGHT_BYTES,
  type WeightFormat,
} from "../../gpu/matrix.ts";
import { separateBuffers } from "../../gpu/arena.ts";
import { UsageError } from "../../errors.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { DType, TensorInfo } from "../files/safetensors.ts";
import { type Shape, vectorBytes, type WeightSource } from "./loader.ts";
import { dequantized } from "../checkpoint/quantized/dequantize.ts";
import { toLanes } from "../checkpoint/quantized/lane_order.ts";
import { rowWords } from "../checkpoint/quantized/modules.ts";
import type { Quantizer } from "./quantizer.ts";
import { batches, type Segment } from "./shards.ts";
import { widen } from "../files/widen.ts";

/** Bytes read and written at a time: small enough to stay in cache, measured fastest in Deno. */
const UPLOAD_BLOCK = 4 << 20;
/** wgpu stages what writeBuffer gets until the next submit; these bound that memory. */
const SUBMIT_EVERY = 64 << 20;
const DRAIN_EVERY = 128 << 20;

const FORMAT: Partial<Record<DType, FloatFormat | Prequantized>> = {
  BF16: "bf16",
  F16: "f16",
  F32: "f32",
  GROUPED_U4: "u4",
  GROUPED_I8: "i8",
  GROUPED_F8: "f8",
};

export interface CheckpointWeightsOptions {
  /** Called with the number of bytes after each block, for a progress bar. */
  readonly onBytes?: (bytes: number) => void;
  /** What matrices become, where their width allows it. */
  readonly quantize?: { readonly to: Quantization; readonly quantizer: Quantizer };
  /** Most lanes of a matrix; default: what suits the adapter. */
  readonly lanes?: number;
}

/** The weights of a checkpoint, streamed from its files. */
export function checkpointWeights(
  gpu: Gpu,
  checkpoint: Checkpoint,
  options: CheckpointWeightsOptions = {},
): WeightSource {
  const { onBytes = () => {}, quantize, lanes = tuning(gpu.info.software).lanes } = options;
  const block = new Uint8Array(UPLOAD_BLOCK);
  const upload = uploader(gpu, onBytes);

  function copy(segments: readonly Segment[], outs: readonly Operand[], rowBytes: number) {
    for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
      const size = rows * rowBytes;
      for (let done = 0; done < size; done += UPLOAD_BLOCK) {
        const part = block.subarray(0, Math.min(UPLOAD_BLOCK, size - done));
        checkpoint.read(tensor, tensorRow * rowBytes + done, part);
        upload(outs[shard] as Operand, shardRow * rowBytes + done, part);
      }
    }
  }

  function pack(matrix: Matrix, segments: readonly Segment[], from: FloatFormat) {
    const { quantizer } = quantize as NonNullable<typeof quantize>;
    const rowBytes = matrix.cols * WEIGHT_BYTES[from];
    for (const batch of batches(segments, quantizer.rows(rowBytes))) {
      copy(staged(batch), [{ buffer: quantizer.staging }], rowBytes);
      quantizer.pack(matrix, batch, from);
    }
  }

  /** Reads rows of a quantized checkpoint a block at a time, counted in `bytes` a row. */
  function readGrouped(
    { cols, shards }: Matrix,
    segments: readonly Segment[],
    { from, bytes }: { readonly from: Prequantized; readonly bytes: number },
    put: (shard: Shard, row: number, words: Uint32Array<ArrayBuffer>) => void,
  ) {
    const rowBytes = 4 * rowWords({ format: from, cols }).all;
    const most = Math.max(1, Math.floor(UPLOAD_BLOCK / bytes));
    for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
      for (let done = 0; done < rows; done += most) {
        const part = new Uint32Array(Math.min(most, rows - done) * rowBytes / 4);
        checkpoint.read(tensor, (tensorRow + done) * rowBytes, bytesOf(part));
        put(shards[shard] as Shard, shardRow + done, part);
      }
    }
  }

  /** Brings rows that are quantized already into lane order. */
  function reorder(matrix: Matrix, segments: readonly Segment[], from: Prequantized) {
    const { cols, lanes } = matrix;
    const order = toLanes({ cols, lanes, format: from });
    const bytes = 4 * rowWords({ format: from, cols }).all;
    readGrouped(matrix, segments, { from, bytes }, ({ operand, scales }, row, part) => {
      const packed = order(part);
      upload(operand, row * cols * WEIGHT_BYTES[from], bytesOf(packed.words));
      upload(scales as Operand, row * scaleBytes(from, cols), bytesOf(packed.scales));
    });
  }

  /** Brings rows of a quantized matrix as float32. */
  function dequantize(matrix: Matrix, segments: readonly Segment[], from: Prequantized) {
    const { cols } = matrix;
    readGrouped(matrix, segments, { from, bytes: 4 * cols }, ({ operand }, row, part) => {
      upload(operand, row * cols * 4, bytesOf(dequantized(part, { format: from, cols })));
    });
  }

  function shapeOf<Format extends WeightFormat>(
    { format: from, cols }: Pick<Shape<FloatFormat | Prequantized>, "format" | "cols">,
    format: Format,
  ): Shape<Format> {
    return { from, format, cols, lanes: lanesFor(format, cols, lanes) };
  }

  return {
    matrixShape(tensors) {
      const shared = sharedShape(checkpoint, tensors);
      const { format, cols } = shared;
      const quantizable = !isPrequantized(format) && isQuantizable(cols);
      return shapeOf(shared, quantize && quantizable ? quantize.to : format);
    },
    tableShape(tensor) {
      const shared = sharedShape(checkpoint, [tensor]);
      return shapeOf(shared, isPrequantized(shared.format) ? "f32" : shared.format);
    },
    fill(matrix, segments, from) {
      const { format, cols, shards } = matrix;
      if (!isPrequantized(from)) {
        if (format !== from) return pack(matrix, segments, from);
        return copy(segments, shards.map(({ operand }) => operand), cols * WEIGHT_BYTES[format]);
      }
      return (format === from ? reorder : dequantize)(matrix, segments, from);
    },
    vector(out, tensors, offset) {
      const values = tensors.flatMap((tensor) => {
        const bytes = new Uint8Array(tensor.size);
        checkpoint.read(tensor, 0, bytes);
        onBytes(tensor.size);
        return [...widen(bytes, tensor.dtype)];
      });
      write(gpu, out, Float32Array.from(values, (value) => offset + value));
    },
    ids: (out, values) => write(gpu, out, values),
  };
}

/** A storage buffer holding `values`. */
export function vectorBuffer(
  gpu: Gpu,
  label: string,
  values: Float32Array | Int32Array | Uint32Array,
): Operand {
  const out = separateBuffers(gpu).allocate(label, vectorBytes(values.length));
  write(gpu, out, values);
  return out;
}

/** Writes to the begin of an operand. */
export function write(
  gpu: Gpu,
  { buffer, offset = 0 }: Operand,
  values: Float32Array | Int32Array | Uint32Array,
): void {
  gpu.device.queue.writeBuffer(buffer, offset, values as Float32Array<ArrayBuffer>);
}

function bytesOf({ buffer }: { readonly buffer: ArrayBuffer }): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer);
}

function uploader(gpu: Gpu, onBytes: (bytes: number) => void) {
  const { queue } = gpu.device;
  let sinceSubmit = 0;
  let sinceDrain = 0;
  return ({ buffer, offset = 0 }: Operand, at: number, part: Uint8Array): void => {
    queue.writeBuffer(buffer, offset + at, part as Uint8Array<ArrayBuffer>);
    onBytes(part.length);
    sinceSubmit += part.length;
    sinceDrain += part.length;
    if (sinceSubmit < SUBMIT_EVERY) return;
    queue.submit([]);
    sinceSubmit = 0;
    if (sinceDrain < DRAIN_EVERY) return;
    // Not awaited: in Deno the call itself drains the queue, awaiting only adds 10 ms.
    queue.onSubmittedWorkDone().catch(() => {});
    sinceDrain = 0;
  };
}

/** The segments one after the other in a buffer of their own. */
function staged(segments: readonly Segment[]): Segment[] {
  let at = 0;
  return segments.map((segment) => {
    const shardRow = at;
    at += segment.rows;
    return { ...segment, shard: 0, shardRow };
  });
}

function sharedShape(
  checkpoint: Checkpoint,
  tensors: readonly TensorInfo[],
): { readonly format: FloatFormat | Prequantized; readonly cols: number } {
  const first = tensors[0] as TensorInfo;
  const { dtype, shape } = first;
  const format = FORMAT[dtype];
  for (const tensor of tensors) {
    if (!format || tensor.dtype !== dtype || tensor.shape[1] !== shape[1]) {
      throw new UsageError(
        `Cannot load "${checkpoint.name}": tensor "${tensor.name}" is ${tensor.dtypeName} ` +
          `[${tensor.shape}], it must match "${first.name}", ${first.dtypeName} [${shape}]`,
      );
    }
  }
  return { format: format as FloatFormat | Prequantized, cols: shape[1] as number };
}
