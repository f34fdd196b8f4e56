import type { Table } from "../../src/gpu/matrix.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import type { Device } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";

/** Random weights that `format` holds exactly, [rows, cols] row-major. */
export function weights(format: FloatFormat, rows: number, cols: number): Float32Array {
  const values = numbers(rows * cols, rows + cols);
  if (format === "f16") return Float32Array.from(Float16Array.from(values));
  const bits = new Uint32Array(values.buffer);
  if (format === "bf16") bits.forEach((word, i) => bits[i] = word & 0xffff0000);
  return values;
}

/** `values` as the words of a weight buffer; bf16 and f16 two to a word, low half first. */
export function packed(format: FloatFormat, values: Float32Array): Uint32Array {
  const exact = values.slice();
  if (format === "f32") return new Uint32Array(exact.buffer);
  if (format === "f16") return new Uint32Array(Float16Array.from(exact).buffer);
  const bits = new Uint32Array(exact.buffer);
  return new Uint32Array(Uint16Array.from(bits, (word) => word >>> 16).buffer);
}

interface Shape {
  readonly format: FloatFormat;
  readonly cols: number;
  /** Lanes that share an output; default 1. */
  readonly lanes?: number;
  /** Rows of each shard; one for an uncut matrix. */
  readonly shards: readonly number[];
}

/** Uploads a matrix cut by rows into shards. */
export function uploadMatrix(device: Device, values: Float32Array, shape: Shape): Table {
  const { format, cols, lanes = 1, shards } = shape;
  let first = 0;
  const cut = shards.map((rows) => {
    const part = values.subarray(first * cols, (first + rows) * cols);
    const shard = { operand: device.words(packed(format, part)), first, rows };
    first += rows;
    return shard;
  });
  return { format, rowOrder: "stacked", rows: first, cols, lanes, shards: cut };
}

/** Uploads [gate; up], each [rows, cols], so that a shard holds both halves of the same rows. */
export function uploadPair(device: Device, values: Float32Array, shape: Shape): Table {
  const { format, cols, lanes = 1, shards } = shape;
  const up = values.length / 2;
  let first = 0;
  const cut = shards.map((rows) => {
    const [from, to] = [first * cols, (first + rows) * cols];
    const both = [...values.subarray(from, to), ...values.subarray(up + from, up + to)];
    const operand = device.words(packed(format, Float32Array.from(both)));
    const shard = { operand, first, rows: rows * 2 };
    first += rows;
    return shard;
  });
  return { format, rowOrder: "gate_up", rows: first * 2, cols, lanes, shards: cut };
}
