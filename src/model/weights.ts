import type { Gpu } from "../gpu/device.ts";
import type { Operand } from "../gpu/kernel.ts";
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
  type Table,
  tuning,
  WEIGHT_BYTES,
  type WeightFormat,
} from "../gpu/matrix.ts";
import { UsageError } from "../errors.ts";
import type { Checkpoint, DType, TensorInfo } from "./checkpoint.ts";
import { dequantized } from "./quantized/dequantize.ts";
import { toLanes } from "./quantized/lane_order.ts";
import { rowWords } from "./quantized/modules.ts";
import type { Quantizer } from "./quantizer.ts";
import {
  batches,
  emptyMatrix,
  headHalves,
  type HeadShape,
  type HeadTensors,
  type Layout,
  paired,
  type Segment,
  stacked,
  wholeStacks,
} from "./shards.ts";
import { widen } from "./widen.ts";

/** Bytes read and written at a time: small enough to stay in cache, measured fastest in Deno. */
const CHUNK = 4 << 20;
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

/** Streams tensors of one checkpoint into GPU buffers. */
export interface Loader {
  /** Stacks tensors of equal width and type by rows into one matrix, quantized where asked for. */
  matrix(label: string, tensors: readonly TensorInfo[]): Matrix;
  /** Stacks two tensors so that each shard holds [a; b] of the same rows (gate and up). */
  pair(label: string, a: TensorInfo, b: TensorInfo): Matrix;
  /** A matrix to look rows up in; never quantized. */
  table(label: string, tensor: TensorInfo): Table;
  /** Stacks tensors of heads so that the halves of a head lie half a shard apart (q, k and v). */
  heads(label: string, tensors: HeadTensors, shape: HeadShape): Matrix;
  /** Stacks the matrices of experts, each of tensors stacked by rows; a shard has whole experts. */
  experts(label: string, experts: readonly (readonly TensorInfo[])[]): Matrix;
  /** Vectors one after the other, widened to f32. */
  vector(label: string, ...tensors: readonly TensorInfo[]): Operand;
  /** The same with `offset` added to each element: weights of norms. */
  norm(label: string, offset: number, ...tensors: readonly TensorInfo[]): Operand;
}

export interface LoaderOptions {
  /** Called with the number of bytes after each chunk, for a progress bar. */
  readonly onBytes?: (bytes: number) => void;
  /** What matrices become, where their width allows it. */
  readonly quantize?: { readonly to: Quantization; readonly quantizer: Quantizer };
  /** Most lanes of a matrix; default: what suits the adapter. */
  readonly lanes?: number;
}

/** Opens a loader. */
export function loader(gpu: Gpu, checkpoint: Checkpoint, options: LoaderOptions = {}): Loader {
  const { onBytes = () => {}, quantize, lanes = tuning(gpu.info.software).lanes } = options;
  const chunk = new Uint8Array(CHUNK);
  const upload = uploader(gpu, onBytes);

  function fill(segments: readonly Segment[], buffers: readonly GPUBuffer[], rowBytes: number) {
    for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
      const size = rows * rowBytes;
      for (let done = 0; done < size; done += CHUNK) {
        const part = chunk.subarray(0, Math.min(CHUNK, size - done));
        checkpoint.read(tensor, tensorRow * rowBytes + done, part);
        upload(buffers[shard] as GPUBuffer, shardRow * rowBytes + done, part);
      }
    }
  }

  function pack(matrix: Matrix, segments: readonly Segment[], from: FloatFormat) {
    const { quantizer } = quantize as NonNullable<typeof quantize>;
    const rowBytes = matrix.cols * WEIGHT_BYTES[from];
    for (const batch of batches(segments, quantizer.rows(rowBytes))) {
      fill(staged(batch), [quantizer.staging], rowBytes);
      quantizer.pack(matrix, batch, from);
    }
  }

  /** Brings rows that are quantized already into lane order. */
  function reorder(matrix: Matrix, segments: readonly Segment[], format: Prequantized) {
    const { cols, lanes } = matrix;
    const order = toLanes({ cols, lanes, format });
    const rowBytes = 4 * rowWords({ format, cols }).all;
    const most = Math.max(1, Math.floor(CHUNK / rowBytes));
    for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
      const { operand, scales } = matrix.shards[shard] as Shard;
      for (let done = 0; done < rows; done += most) {
        const part = new Uint32Array(Math.min(most, rows - done) * rowBytes / 4);
        checkpoint.read(tensor, (tensorRow + done) * rowBytes, bytesOf(part));
        const packed = order(part);
        const row = shardRow + done;
        upload(operand.buffer, row * cols * WEIGHT_BYTES[format], bytesOf(packed.words));
        upload((scales as Operand).buffer, row * scaleBytes(format, cols), bytesOf(packed.scales));
      }
    }
  }

  /** A quantized matrix as float32. */
  function buildFloats(
    label: string,
    { from, cols }: { readonly from: Prequantized; readonly cols: number },
    { cuts, segments }: Layout,
  ): Table {
    const format = "f32";
    const matrix = emptyMatrix(gpu, label, cuts, {
      cols,
      format,
      lanes: lanesFor(format, cols, lanes),
    });
    const rowBytes = 4 * rowWords({ format: from, cols }).all;
    const most = Math.max(1, Math.floor(CHUNK / (4 * cols)));
    for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
      const { operand } = matrix.shards[shard] as Shard;
      for (let done = 0; done < rows; done += most) {
        const part = new Uint32Array(Math.min(most, rows - done) * rowBytes / 4);
        checkpoint.read(tensor, (tensorRow + done) * rowBytes, bytesOf(part));
        const floats = dequantized(part, { format: from, cols });
        upload(operand.buffer, (shardRow + done) * cols * 4, bytesOf(floats));
      }
    }
    return { ...matrix, format };
  }

  function build<Format extends WeightFormat>(
    label: string,
    { from, format, cols }: { from: FloatFormat | Prequantized; format: Format; cols: number },
    { cuts, segments }: Layout,
  ): Matrix & { readonly format: Format } {
    const shape = { cols, format, lanes: lanesFor(format, cols, lanes) };
    const matrix = { ...emptyMatrix(gpu, label, cuts, shape), format };
    const buffers = matrix.shards.map(({ operand }) => operand.buffer);
    if (isPrequantized(from)) reorder(matrix, segments, from);
    else if (format !== from) pack(matrix, segments, from);
    else fill(segments, buffers, cols * WEIGHT_BYTES[format]);
    return matrix;
  }

  /** The tensors' common shape and what becomes of them. */
  function shapeOf(tensors: readonly TensorInfo[]) {
    const { format: from, cols } = sharedShape(checkpoint, tensors);
    const quantizable = !isPrequantized(from) && isQuantizable(cols);
    const format = quantize && quantizable ? quantize.to : from;
    return { from, format, cols, rowBytes: cols * WEIGHT_BYTES[format] };
  }

  /** Vectors one after the other. */
  function readVectors(tensors: readonly TensorInfo[]): Float32Array {
    const values = tensors.flatMap((tensor) => {
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      onBytes(tensor.size);
      return [...widen(bytes, tensor.dtype)];
    });
    return Float32Array.from(values);
  }

  return {
    matrix(label, tensors) {
      const shape = shapeOf(tensors);
      return build(label, shape, stacked(gpu, tensors, shape.rowBytes));
    },
    pair(label, a, b) {
      const shape = shapeOf([a, b]);
      return build(label, shape, paired(gpu, a, b, shape.rowBytes));
    },
    table(label, tensor) {
      const { format, cols } = sharedShape(checkpoint, [tensor]);
      if (isPrequantized(format)) {
        const layout = stacked(gpu, [tensor], cols * WEIGHT_BYTES.f32);
        return buildFloats(label, { from: format, cols }, layout);
      }
      const layout = stacked(gpu, [tensor], cols * WEIGHT_BYTES[format]);
      return build(label, { from: format, format, cols }, layout);
    },
    heads(label, tensors, heads) {
      const shape = shapeOf([...tensors.turned, ...tensors.plain]);
      return build(label, shape, headHalves(gpu, tensors, heads, shape.rowBytes));
    },
    experts(label, experts) {
      const shape = shapeOf(experts.flat());
      return build(label, shape, wholeStacks(gpu, experts, shape.rowBytes));
    },
    vector: (label, ...tensors) => vectorBuffer(gpu, label, readVectors(tensors)),
    norm: (label, offset, ...tensors) =>
      vectorBuffer(gpu, label, readVectors(tensors).map((weight) => offset + weight)),
  };
}

/** A storage buffer holding `values`. */
export function vectorBuffer(
  gpu: Gpu,
  label: string,
  values: Float32Array | Int32Array | Uint32Array,
): Operand {
  const buffer = gpu.device.createBuffer({
    label,
    size: Math.max(16, values.byteLength),
    usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST,
  });
  gpu.device.queue.writeBuffer(buffer, 0, values as Float32Array<ArrayBuffer>);
  return { buffer };
}

function bytesOf({ buffer }: { readonly buffer: ArrayBuffer }): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer);
}

function uploader(gpu: Gpu, onBytes: (bytes: number) => void) {
  const { queue } = gpu.device;
  let sinceSubmit = 0;
  let sinceDrain = 0;
  return (buffer: GPUBuffer, offset: number, part: Uint8Array): void => {
    queue.writeBuffer(buffer, offset, part as Uint8Array<ArrayBuffer>);
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
