import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { tuning } from "../../gpu/tuning.ts";
import {
  type FloatFormat,
  GROUP,
  isInteger,
  isPrequantized,
  isQuantizable,
  isQuantized,
  lanesFor,
  type Prequantized,
  type Quantization,
  scaleBytes,
  WEIGHT_BYTES,
  type WeightFormat,
} from "../../gpu/weight_format.ts";
import { separateBuffers } from "../../gpu/arena.ts";
import { UsageError } from "../../errors.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { DType, TensorInfo } from "../files/safetensors.ts";
import {
  type Shape,
  type StoredFormat,
  vectorBytes,
  type WeightShapes,
  type WeightSource,
} from "./loader.ts";
import { BLOCK_BYTES, blocksToLanes, blockValues } from "../checkpoint/quantized/blocks.ts";
import { dequantized } from "../checkpoint/quantized/dequantize.ts";
import { toLanes } from "../checkpoint/quantized/lane_order.ts";
import { rowWords } from "../checkpoint/quantized/modules.ts";
import type { Quantizer } from "./quantizer.ts";
import { batches, type Segment } from "./shards.ts";
import { widen } from "../files/widen.ts";

/** Bytes read and uploaded at a time: small enough to stay in cache, measured fastest in Deno. */
const UPLOAD_BLOCK = 4 << 20;
/** wgpu keeps staging copies of writeBuffer's data until the next submit; these two bound that memory. */
const SUBMIT_EVERY = 64 << 20;
const DRAIN_EVERY = 128 << 20;

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

/** Rows stored in blocks, as `eyrie convert --quantize` writes them. */
interface Blocks {
  readonly from: Quantization;
  readonly cols: number;
}

/** Rows of a quantized checkpoint. */
interface Grouped {
  readonly from: Prequantized;
  readonly cols: number;
}

export interface CheckpointWeightsOptions {
  /** Called after each block with its number of bytes, for a progress bar. */
  readonly onBytes?: (bytes: number) => void;
  /** Quantizes matrices, if their width allows it. */
  readonly quantize?: { readonly to: Quantization; readonly quantizer: Quantizer };
  /** Most lanes of a matrix; default: the adapter's. */
  readonly lanes?: number;
}

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

/** The weights of a checkpoint, streamed from its files. */
export function checkpointWeights(
  gpu: Gpu,
  checkpoint: Checkpoint,
  options: CheckpointWeightsOptions = {},
): WeightSource {
  const { onBytes = () => {}, quantize, lanes = tuning(gpu.info.software).lanes } = options;
  const block = new Uint8Array(UPLOAD_BLOCK);
  const upload = uploader(gpu, onBytes);

  /** Uploads rows in the format `to`: unchanged, or as float32 if tensors of several types are stacked. */
  function bring(
    segments: readonly Segment[],
    outs: readonly Operand[],
    { to, cols }: { readonly to: FloatFormat; readonly cols: number },
  ) {
    for (const segment of segments) {
      const own = formatOf(segment.tensor);
      if (own === to) copy(segment, outs, cols * WEIGHT_BYTES[to]);
      else if (isPrequantized(own)) dequantize([segment], outs, { from: own, cols });
      else if (isInteger(own)) widenBlocks([segment], outs, { from: own, cols });
      else widenRows(segment, outs, { from: own, cols });
    }
  }

  function copy(segment: Segment, outs: readonly Operand[], rowBytes: number) {
    const { tensor, tensorRow, rows, shard, shardRow } = segment;
    const size = rows * rowBytes;
    for (let done = 0; done < size; done += UPLOAD_BLOCK) {
      const part = block.subarray(0, Math.min(UPLOAD_BLOCK, size - done));
      checkpoint.read(tensor, tensorRow * rowBytes + done, part);
      upload(outs[shard] as Operand, shardRow * rowBytes + done, part);
    }
  }

  /** Uploads rows as float32, which is exact: every bf16 and f16 number is one. */
  function widenRows(
    { tensor, tensorRow, rows, shard, shardRow }: Segment,
    outs: readonly Operand[],
    { from, cols }: { readonly from: FloatFormat; readonly cols: number },
  ) {
    const bytes = WEIGHT_BYTES[from];
    const [size, most] = [rows * cols, UPLOAD_BLOCK / 4];
    for (let done = 0; done < size; done += most) {
      const part = block.subarray(0, bytes * Math.min(most, size - done));
      checkpoint.read(tensor, bytes * (tensorRow * cols + done), part);
      const at = 4 * (shardRow * cols + done);
      upload(outs[shard] as Operand, at, bytesOf(widen(part, tensor.dtype)));
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

  /** Reads rows of a quantized checkpoint, at most UPLOAD_BLOCK at a time with `bytes` counted per row. */
  function readGrouped(
    segments: readonly Segment[],
    { from, cols, bytes }: Grouped & { readonly bytes: number },
    put: (shard: number, row: number, words: Uint32Array<ArrayBuffer>) => void,
  ) {
    const rowBytes = 4 * rowWords({ format: from, cols }).all;
    // The scales of four rows fill whole words in every format.
    const most = 4 * Math.max(1, Math.floor(UPLOAD_BLOCK / bytes / 4));
    for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
      for (let done = 0; done < rows; done += most) {
        const part = new Uint32Array(Math.min(most, rows - done) * rowBytes / 4);
        checkpoint.read(tensor, (tensorRow + done) * rowBytes, bytesOf(part));
        put(shard, shardRow + done, part);
      }
    }
  }

  /** Uploads rows of a quantized checkpoint in lane order. */
  function reorder(matrix: Matrix, segments: readonly Segment[], from: Prequantized) {
    const { cols, lanes, shards } = matrix;
    const order = toLanes({ cols, lanes, format: from });
    const bytes = 4 * rowWords({ format: from, cols }).all;
    readGrouped(segments, { from, cols, bytes }, (shard, row, part) => {
      const { operand, scales } = shards[shard] as Shard;
      const packed = order(part);
      upload(operand, row * cols * WEIGHT_BYTES[from], bytesOf(packed.words));
      upload(scales as Operand, row * scaleBytes(from, cols), bytesOf(packed.scales));
    });
  }

  /** Uploads rows of a quantized checkpoint as float32. */
  function dequantize(
    segments: readonly Segment[],
    outs: readonly Operand[],
    { from, cols }: Grouped,
  ) {
    readGrouped(segments, { from, cols, bytes: 4 * cols }, (shard, row, part) => {
      const values = dequantized(part, { format: from, cols });
      upload(outs[shard] as Operand, row * cols * 4, bytesOf(values));
    });
  }

  /** Reads rows that are stored in blocks, at most UPLOAD_BLOCK at a time with `bytes` counted per row. */
  function readBlocks(
    segments: readonly Segment[],
    { from, cols, bytes }: Blocks & { readonly bytes: number },
    put: (shard: number, row: number, blocks: Uint8Array<ArrayBuffer>) => void,
  ) {
    const rowBytes = cols / GROUP * BLOCK_BYTES[from];
    const most = Math.max(1, Math.floor(UPLOAD_BLOCK / bytes));
    for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
      for (let done = 0; done < rows; done += most) {
        const part = new Uint8Array(Math.min(most, rows - done) * rowBytes);
        checkpoint.read(tensor, (tensorRow + done) * rowBytes, part);
        put(shard, shardRow + done, part);
      }
    }
  }

  /** Uploads rows stored in blocks in lane order. */
  function placeBlocks(matrix: Matrix, segments: readonly Segment[], from: Quantization) {
    const { cols, lanes, shards } = matrix;
    const order = blocksToLanes({ format: from, cols, lanes });
    readBlocks(segments, { from, cols, bytes: cols * WEIGHT_BYTES[from] }, (shard, row, part) => {
      const { operand, scales } = shards[shard] as Shard;
      const placed = order(part);
      upload(operand, row * cols * WEIGHT_BYTES[from], bytesOf(placed.words));
      upload(scales as Operand, row * scaleBytes(from, cols), bytesOf(placed.scales));
    });
  }

  /** Uploads rows stored in blocks as float32, which is exact. */
  function widenBlocks(
    segments: readonly Segment[],
    outs: readonly Operand[],
    { from, cols }: Blocks,
  ) {
    readBlocks(segments, { from, cols, bytes: 4 * cols }, (shard, row, part) => {
      upload(outs[shard] as Operand, row * cols * 4, bytesOf(blockValues(part, from)));
    });
  }

  return {
    ...checkpointShapes(checkpoint, { quantize: quantize?.to, lanes }),
    fill(matrix, segments, from) {
      const { format, cols, shards } = matrix;
      const outs = shards.map(({ operand }) => operand);
      if (isPrequantized(from)) {
        if (format === from) return reorder(matrix, segments, from);
        return dequantize(segments, outs, { from, cols });
      }
      if (isInteger(from)) {
        if (format === from) return placeBlocks(matrix, segments, from);
        return widenBlocks(segments, outs, { from, cols });
      }
      if (format !== from) return pack(matrix, segments, from);
      return bring(segments, outs, { to: from, cols });
    },
    vector(out, tensors, offset, factor = 1) {
      const values = tensors.flatMap((tensor) => {
        const bytes = new Uint8Array(tensor.size);
        checkpoint.read(tensor, 0, bytes);
        onBytes(tensor.size);
        return [...widen(bytes, tensor.dtype)];
      });
      write(gpu, out, Float32Array.from(values, (value) => offset + factor * value));
    },
    ids: (out, values) => write(gpu, out, values()),
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

/** Writes `values` at the beginning of an operand. */
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

/** Returns a function that writes to a part of an operand; it submits and drains so that staging memory is bounded. */
export function uploader(
  gpu: Gpu,
  onBytes: (bytes: number) => void,
): (to: Operand, at: number, part: Uint8Array) => void {
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
    gpu.drain();
    sinceDrain = 0;
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

function formatOf({ dtype }: TensorInfo): StoredFormat {
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
