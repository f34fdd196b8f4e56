/** Cuts matrices by rows into shards where one binding cannot hold them. */
import { UsageError } from "../../errors.ts";
import { type Gpu, largestBinding } from "../../gpu/device.ts";
import type { Matrix, RowOrder, Shard } from "../../gpu/matrix.ts";
import { scaleBytes, WEIGHT_BYTES, type WeightFormat } from "../../gpu/weight_format.ts";
import type { Arena } from "../../gpu/arena.ts";
import type { TensorInfo } from "../files/safetensors.ts";

type Limited = Pick<Gpu, "limits">;

/** A shard before its memory is allocated. */
export type Cut = Omit<Shard, "operand" | "scales">;

/** Consecutive rows of a shard. */
export interface Run {
  readonly rows: number;
  readonly shard: number;
  readonly shardRow: number;
}

/** A run of a tensor's rows and where in the matrix's shards it goes. */
export interface Segment extends Run {
  readonly tensor: TensorInfo;
  readonly tensorRow: number;
}

/** The shards of a matrix and which rows of which tensors they hold. */
export interface Layout {
  readonly rowOrder: RowOrder;
  readonly cuts: readonly Cut[];
  readonly segments: readonly Segment[];
}

/**
 * Tensors of equal width and type, stacked by rows.
 *
 * @param rowBytes bytes of a row on the GPU, without scales.
 */
export function stacked(gpu: Limited, tensors: readonly TensorInfo[], rowBytes: number): Layout {
  const rows = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
  const limit = shardRows(gpu, rowBytes);
  return { rowOrder: "stacked", cuts: cut(even(rows), limit), segments: stack(tensors, limit) };
}

/**
 * Places stacks of tensors of equal width one after the other and cuts none of them. Each stack has as many
 * rows as the first. A larger one must be followed by empty stacks, whose places it takes; then all stacks
 * must fit in one binding.
 *
 * @throws UsageError if a stack does not fit in a binding.
 */
export function wholeStacks(
  gpu: Limited,
  stacks: readonly (readonly TensorInfo[])[],
  rowBytes: number,
): Layout {
  const rows = (stacks[0] ?? []).reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
  const limit = Math.floor(shardRows(gpu, rowBytes) / rows) * rows;
  if (limit === 0) {
    throw new UsageError(
      `Cannot load tensor "${stacks[0]?.[0]?.name}": an expert takes ${rows * rowBytes} bytes, ` +
        `the adapter binds ${gpu.limits.maxStorageBufferBindingSize}`,
    );
  }
  return {
    rowOrder: "stacked",
    cuts: cut(rows * stacks.length, limit),
    segments: stack(stacks.flat(), limit),
  };
}

/** Two tensors of the same shape: each shard is [a; b], with the same rows of both. */
export function gateUp(gpu: Limited, a: TensorInfo, b: TensorInfo, rowBytes: number): Layout {
  const rows = [{ rows: a.shape[0] ?? 0, a: [a, 0], b: [b, 0] }] as const;
  return { rowOrder: "gate_up", ...halves(gpu, rows, rowBytes) };
}

/** Tensors of whole heads. q and k are rotated by the rope (turned), v is not (plain). */
export interface HeadTensors {
  readonly turned: readonly TensorInfo[];
  readonly plain: readonly TensorInfo[];
}

export interface HeadShape {
  readonly headDim: number;
  /** Leading rows of a head that the rope turns. */
  readonly width: number;
}

/**
 * Tensors of whole heads: each shard has the first halves of its heads and then the second halves,
 * so that a rope pair is stored half a shard apart. If the rope turns only a part of the head, the
 * halves of that part come before those of the rest. q and k are reordered alike, so their dot product
 * stays the same.
 */
export function headHalves(
  gpu: Limited,
  { turned, plain }: HeadTensors,
  { headDim, width }: HeadShape,
  rowBytes: number,
): Layout {
  const runs = [
    ...turned.flatMap((tensor) => headRuns(tensor, headDim, [width, headDim - width])),
    ...plain.flatMap((tensor) => headRuns(tensor, headDim, [headDim])),
  ];
  return { rowOrder: "rope_halves", ...halves(gpu, runs, rowBytes) };
}

/** Head by head, the parts of a head one after the other, each split in halves. */
function headRuns(
  tensor: TensorInfo,
  headDim: number,
  parts: readonly number[],
): PairedRun[] {
  const heads = (tensor.shape[0] ?? 0) / headDim;
  return Array.from({ length: heads }, (_, head) => {
    let first = head * headDim;
    return parts.filter((size) => size > 0).map((size): PairedRun => {
      const begin = first;
      first += size;
      return { rows: size / 2, a: [tensor, begin], b: [tensor, begin + size / 2] };
    });
  }).flat();
}

/** Rows `a`, and as many rows `b`, which are stored half a shard after them. */
interface PairedRun {
  readonly rows: number;
  /** Tensor and its first row. */
  readonly a: readonly [TensorInfo, number];
  readonly b: readonly [TensorInfo, number];
}

/** Places runs one after the other in shards [a; b]. */
function halves(
  gpu: Limited,
  runs: readonly PairedRun[],
  rowBytes: number,
): Omit<Layout, "rowOrder"> {
  const total = runs.reduce((sum, { rows }) => sum + rows, 0);
  const cuts = cut(total, shardRows(gpu, rowBytes) / 2);
  let at = 0;
  const segments = runs.flatMap(({ rows: length, a, b }) => {
    const begin = at;
    at += length;
    return cuts.flatMap(({ first, rows }, shard): Segment[] => {
      const from = Math.max(first, begin);
      const to = Math.min(first + rows, begin + length);
      if (from >= to) return [];
      const part = { rows: to - from, shard };
      const [done, shardRow] = [from - begin, from - first];
      return [
        { ...part, tensor: a[0], tensorRow: a[1] + done, shardRow },
        { ...part, tensor: b[0], tensorRow: b[1] + done, shardRow: rows + shardRow },
      ];
    });
  });
  return { cuts: cuts.map(({ first, rows }) => ({ first, rows: rows * 2 })), segments };
}

/** Groups segments, cutting them where needed: a group has at most `most` rows, all in one shard. */
export function batches(segments: readonly Segment[], most: number): Segment[][] {
  const out: Segment[][] = [];
  let left = 0;
  for (const segment of segments) {
    if (out.at(-1)?.[0]?.shard !== segment.shard) left = 0;
    for (let done = 0; done < segment.rows;) {
      if (left === 0) {
        out.push([]);
        left = most;
      }
      const rows = Math.min(left, segment.rows - done);
      const [tensorRow, shardRow] = [segment.tensorRow + done, segment.shardRow + done];
      out.at(-1)?.push({ ...segment, rows, tensorRow, shardRow });
      done += rows;
      left -= rows;
    }
  }
  return out;
}

/** Allocates the matrix, filled with zeros. */
export function emptyMatrix<Format extends WeightFormat>(
  arena: Arena,
  label: string,
  cuts: readonly Cut[],
  shape: Pick<Matrix, "cols" | "lanes" | "rowOrder"> & { readonly format: Format },
): Matrix & { readonly format: Format } {
  const { cols, format } = shape;
  const scales = scaleBytes(format, cols);
  const shards = cuts.map((shard, i) => {
    const name = cuts.length > 1 ? `${label}#${i}` : label;
    return {
      ...shard,
      operand: arena.allocate(name, shard.rows * cols * WEIGHT_BYTES[format]),
      ...scales > 0
        ? { scales: arena.allocate(`${name}.scales`, 4 * Math.ceil(shard.rows * scales / 4)) }
        : {},
    };
  });
  return { ...shape, rows: cuts.reduce((sum, { rows }) => sum + rows, 0), shards };
}

/** How many rows fit in one binding: a multiple of 4. */
export function shardRows(gpu: Limited, rowBytes: number): number {
  return Math.floor(largestBinding(gpu.limits) / rowBytes / 4) * 4;
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
