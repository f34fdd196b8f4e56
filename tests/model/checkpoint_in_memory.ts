import assert from "node:assert/strict";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import type { DType, TensorInfo } from "../../src/model/files/safetensors.ts";
import { hash32 } from "../../src/speculate/noise.ts";

export const BYTES: Partial<Record<DType, number>> = { BF16: 2, F16: 2, F32: 4 };

/** A checkpoint in memory, each tensor full of its own bytes. */
export interface Memory extends Checkpoint {
  tensor(name: string): TensorInfo;
  bytes(name: string): Uint8Array;
  /** Rows `from` to `to` of a tensor, as bytes. */
  rows(name: string, from: number, to: number): Uint8Array;
  /** Bytes of the largest read so far. */
  readonly largest: number;
}

export type Shapes = Readonly<Record<string, readonly [dtype: DType, ...shape: number[]]>>;

export function checkpointInMemory(shapes: Shapes): Memory {
  const entries = Object.entries(shapes).map(([name, [dtype, ...shape]], index) => {
    const size = shape.reduce((product, n) => product * n, BYTES[dtype] ?? 8);
    const tensor = { name, dtype, dtypeName: dtype, shape, file: "model", begin: 0, size };
    const words = Uint32Array.from({ length: Math.ceil(size / 4) }, (_, i) => hash32(3, index, i));
    return { tensor, bytes: new Uint8Array(words.buffer, 0, size) };
  });
  const of = (name: string) => {
    const entry = entries.find(({ tensor }) => tensor.name === name);
    if (!entry) throw new Error(`no tensor ${name}`);
    return entry;
  };
  let largest = 0;
  return {
    name: "memory",
    tensors: new Map(entries.map(({ tensor }) => [tensor.name, tensor])),
    json: () => undefined,
    text: () => undefined,
    read({ name }, offset, into) {
      const { bytes } = of(name);
      assert.ok(offset >= 0 && offset + into.length <= bytes.length, `read past ${name}`);
      largest = Math.max(largest, into.length);
      into.set(bytes.subarray(offset, offset + into.length));
    },
    [Symbol.dispose]: () => {},
    tensor: (name) => of(name).tensor,
    bytes: (name) => of(name).bytes,
    rows(name, from, to) {
      const { tensor, bytes } = of(name);
      const row = tensor.size / (tensor.shape[0] ?? 1);
      return bytes.subarray(from * row, to * row);
    },
    get largest() {
      return largest;
    },
  };
}

export function join(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
