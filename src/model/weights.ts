import type { Gpu } from "../gpu/device.ts";
import type { Operand } from "../gpu/kernel.ts";
import { type Matrix, WEIGHT_BYTES, type WeightFormat } from "../gpu/matrix.ts";
import { UsageError } from "../errors.ts";
import type { Checkpoint, DType, TensorInfo } from "./checkpoint.ts";
import { emptyMatrix, type Layout, paired, type Segment, stacked } from "./shards.ts";

/** Bytes read and written at a time: small enough to stay in cache, measured fastest in Deno. */
const CHUNK = 4 << 20;
/** wgpu stages what writeBuffer gets until the next submit; these bound that memory. */
const SUBMIT_EVERY = 64 << 20;
const DRAIN_EVERY = 128 << 20;

const FORMAT: Partial<Record<DType, WeightFormat>> = { BF16: "bf16", F16: "f16", F32: "f32" };

/** Streams tensors of one checkpoint into GPU buffers. */
export interface Loader {
  /** Stacks tensors of equal width and type by rows into one matrix. */
  matrix(label: string, tensors: readonly TensorInfo[]): Matrix;
  /** Stacks two tensors so that each shard holds [a; b] of the same rows (gate and up). */
  pair(label: string, a: TensorInfo, b: TensorInfo): Matrix;
  /** A vector, widened to f32. */
  vector(label: string, tensor: TensorInfo): Operand;
}

/**
 * Opens a loader.
 *
 * @param onBytes called with the number of bytes after each chunk, for a progress bar.
 */
export function loader(
  gpu: Gpu,
  checkpoint: Checkpoint,
  onBytes: (bytes: number) => void = () => {},
): Loader {
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

  function build(label: string, layout: Layout): Matrix {
    const { segments } = layout;
    const { cols, format } = sharedShape(checkpoint, segments);
    const matrix = emptyMatrix(gpu, label, layout.cuts, { cols, format });
    const buffers = matrix.shards.map(({ operand }) => operand.buffer);
    fill(segments, buffers, cols * WEIGHT_BYTES[format]);
    return matrix;
  }

  return {
    matrix: (label, tensors) => build(label, stacked(gpu, tensors)),
    pair: (label, a, b) => build(label, paired(gpu, a, b)),
    vector(label, tensor) {
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      onBytes(tensor.size);
      return vectorBuffer(gpu, label, widen(bytes, tensor.dtype));
    },
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

/** F32, F16 or BF16 bytes (little endian) as f32; exact. */
export function widen(bytes: Uint8Array, dtype: DType): Float32Array {
  if (dtype === "F32") return new Float32Array(bytes.slice().buffer);
  const halves = new Uint16Array(bytes.slice().buffer);
  if (dtype === "F16") return Float32Array.from(new Float16Array(halves.buffer));
  const out = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) out[i] = (halves[i] ?? 0) << 16;
  return new Float32Array(out.buffer);
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

function sharedShape(checkpoint: Checkpoint, segments: readonly Segment[]) {
  const [first] = segments;
  const { dtype, shape } = (first as Segment).tensor;
  const format = FORMAT[dtype];
  for (const { tensor } of segments) {
    if (!format || tensor.dtype !== dtype || tensor.shape[1] !== shape[1]) {
      throw new UsageError(
        `Cannot load "${checkpoint.name}": tensor "${tensor.name}" is ${tensor.dtype} ` +
          `[${tensor.shape}], it must match "${first?.tensor.name}", ${dtype} [${shape}]`,
      );
    }
  }
  return { format: format as WeightFormat, cols: shape[1] as number };
}
