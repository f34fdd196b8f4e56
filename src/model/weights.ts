import type { Gpu } from "../gpu/device.ts";
import type { Operand } from "../gpu/kernel.ts";
import { type Matrix, WEIGHT_BYTES, type WeightFormat } from "../gpu/matrix.ts";
import { UsageError } from "../errors.ts";
import type { Checkpoint, DType, TensorInfo } from "./checkpoint.ts";

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

/** A run of a tensor's rows and where in the matrix's shards it goes. */
interface Segment {
  readonly tensor: TensorInfo;
  readonly tensorRow: number;
  readonly rows: number;
  readonly shard: number;
  readonly shardRow: number;
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

  function build(
    label: string,
    sizes: readonly { first: number; rows: number }[],
    segments: readonly Segment[],
  ): Matrix {
    const { cols, format } = sharedShape(checkpoint, segments);
    const rowBytes = cols * WEIGHT_BYTES[format];
    const buffers = sizes.map(({ rows }, i) =>
      gpu.device.createBuffer({
        label: sizes.length > 1 ? `${label}#${i}` : label,
        size: rows * rowBytes,
        usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST,
      })
    );
    fill(segments, buffers, rowBytes);
    const shards = sizes.map(({ first, rows }, i) => ({
      operand: { buffer: buffers[i] as GPUBuffer },
      first,
      rows,
    }));
    return { format, rows: sizes.reduce((sum, { rows }) => sum + rows, 0), cols, shards };
  }

  return {
    matrix(label, tensors) {
      const rows = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
      const limit = shardRows(gpu, tensors[0] as TensorInfo);
      const sizes = cut(even(rows), limit);
      return build(label, sizes, stack(tensors, limit));
    },
    pair(label, a, b) {
      const limit = shardRows(gpu, a) / 2;
      const halves = cut(a.shape[0] ?? 0, limit);
      const segments = halves.flatMap(({ first, rows }, shard) => [
        { tensor: a, tensorRow: first, rows, shard, shardRow: 0 },
        { tensor: b, tensorRow: first, rows, shard, shardRow: rows },
      ]);
      return build(label, halves.map(({ first, rows }) => ({ first, rows: rows * 2 })), segments);
    },
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

/** Rows of the tensor's width that fit one binding, even. */
function shardRows(gpu: Gpu, tensor: TensorInfo): number {
  const bytes = tensor.size / (tensor.shape[0] ?? 1);
  const limit = Math.min(gpu.limits.maxStorageBufferBindingSize, gpu.limits.maxBufferSize);
  return Math.floor(limit / bytes / 4) * 4;
}

function even(n: number): number {
  return n + n % 2;
}

function cut(rows: number, limit: number): { first: number; rows: number }[] {
  const out = [];
  for (let first = 0; first < rows; first += limit) {
    out.push({ first, rows: Math.min(limit, rows - first) });
  }
  return out;
}

/** Segments of tensors stacked by rows over shards of `limit` rows. */
function stack(tensors: readonly TensorInfo[], limit: number): Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  for (const tensor of tensors) {
    const total = tensor.shape[0] ?? 0;
    for (let row = 0; row < total;) {
      const shardRow = at % limit;
      const rows = Math.min(total - row, limit - shardRow);
      segments.push({ tensor, tensorRow: row, rows, shard: Math.floor(at / limit), shardRow });
      row += rows;
      at += rows;
    }
  }
  return segments;
}
