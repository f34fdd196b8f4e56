/** How matrices are cut by rows into shards where one binding cannot hold them. */
import type { Gpu } from "../gpu/device.ts";
import { type Matrix, type Shard, WEIGHT_BYTES } from "../gpu/matrix.ts";
import type { TensorInfo } from "./checkpoint.ts";

/** A shard before it has a buffer. */
export type Cut = Omit<Shard, "operand">;

/** A run of a tensor's rows and where in the matrix's shards it goes. */
export interface Segment {
  readonly tensor: TensorInfo;
  readonly tensorRow: number;
  readonly rows: number;
  readonly shard: number;
  readonly shardRow: number;
}

/** The shards of a matrix and which rows of which tensors they hold. */
export interface Layout {
  readonly cuts: readonly Cut[];
  readonly segments: readonly Segment[];
}

/** Tensors of equal width and type, stacked by rows. */
export function stacked(gpu: Gpu, tensors: readonly TensorInfo[]): Layout {
  const rows = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
  const limit = shardRows(gpu, tensors[0] as TensorInfo);
  return { cuts: cut(even(rows), limit), segments: stack(tensors, limit) };
}

/** Two tensors, each shard [a; b] of the same rows. */
export function paired(gpu: Gpu, a: TensorInfo, b: TensorInfo): Layout {
  const halves = cut(a.shape[0] ?? 0, shardRows(gpu, a) / 2);
  const segments = halves.flatMap(({ first, rows }, shard) => [
    { tensor: a, tensorRow: first, rows, shard, shardRow: 0 },
    { tensor: b, tensorRow: first, rows, shard, shardRow: rows },
  ]);
  return { cuts: halves.map(({ first, rows }) => ({ first, rows: rows * 2 })), segments };
}

/** The matrix in buffers of zeros. */
export function emptyMatrix(
  gpu: Gpu,
  label: string,
  cuts: readonly Cut[],
  { cols, format }: Pick<Matrix, "cols" | "format">,
): Matrix {
  const shards = cuts.map((shard, i) => {
    const buffer = gpu.device.createBuffer({
      label: cuts.length > 1 ? `${label}#${i}` : label,
      size: shard.rows * cols * WEIGHT_BYTES[format],
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST,
    });
    return { ...shard, operand: { buffer } };
  });
  return { format, rows: cuts.reduce((sum, { rows }) => sum + rows, 0), cols, shards };
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

function cut(rows: number, limit: number): Cut[] {
  const out: Cut[] = [];
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
