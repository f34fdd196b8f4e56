/** The embedded heads as others publish theirs: the same tensors by other names, files and keys. */
import { widen } from "../../src/model/files/widen.ts";
import { type EmbeddedName, openEmbedded } from "../../src/model/checkpoint/embedded.ts";
import { type Entry, safetensors } from "./folders.ts";
import { torchFile } from "./torch_files.ts";

/** A tensor with its bytes. */
export interface Stored {
  /** safetensors' name. */
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export type Tensors = Readonly<Record<string, Stored>>;

/** A head in memory. */
export interface Head {
  readonly config: Readonly<Record<string, unknown>>;
  readonly tensors: Tensors;
}

/** Files of a checkpoint folder. */
export type HeadFiles = Readonly<Record<string, Uint8Array>>;

const STORAGE: Readonly<Record<string, readonly [storage: string, bytes: number]>> = {
  F32: ["FloatStorage", 4],
  F16: ["HalfStorage", 2],
  BF16: ["BFloat16Storage", 2],
  I64: ["LongStorage", 8],
  I32: ["IntStorage", 4],
  BOOL: ["BoolStorage", 1],
};

/** An embedded head or the target. */
export function embeddedHead(name: EmbeddedName): Head {
  using checkpoint = openEmbedded(name);
  const tensors = Object.fromEntries(
    checkpoint.tensors.values().map((tensor) => {
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      return [tensor.name, { dtype: tensor.dtype, shape: tensor.shape, bytes }];
    }),
  );
  return { config: checkpoint.json("config.json") as Head["config"], tensors };
}

/** The head under other names; a name that becomes undefined is left out. */
export function rename(tensors: Tensors, to: (name: string) => string | undefined): Tensors {
  return Object.fromEntries(
    Object.entries(tensors).flatMap(([name, tensor]) => {
      const renamed = to(name);
      return renamed === undefined ? [] : [[renamed, tensor]];
    }),
  );
}

/** Keys of the config but for some. */
export function but(config: Head["config"], ...keys: readonly string[]): Head["config"] {
  return Object.fromEntries(Object.entries(config).filter(([key]) => !keys.includes(key)));
}

/** A bf16 tensor of these values; only the upper half of each f32 is kept. */
export function bf16(shape: readonly number[], values: ArrayLike<number>): Stored {
  const words = new Uint32Array(Float32Array.from(values).buffer);
  const halves = Uint16Array.from(words, (word) => word >>> 16);
  return { dtype: "BF16", shape, bytes: new Uint8Array(halves.buffer) };
}

/** Values of a tensor of real numbers. */
export function valuesOf({ bytes, dtype }: Stored): Float32Array {
  return widen(bytes, dtype as "BF16");
}

/** The matrix with column c times `scale(c)`: exact where that is a power of two or zero. */
export function scaleColumns(matrix: Stored, scale: (column: number) => number): Stored {
  const cols = matrix.shape[1] ?? 1;
  return bf16(matrix.shape, valuesOf(matrix).map((value, i) => value * scale(i % cols)));
}

/** config.json and model.safetensors. */
export function safetensorsFiles({ config, tensors }: Head): HeadFiles {
  const header: Record<string, Entry> = {};
  let end = 0;
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, end += bytes.length] };
  }
  const file = safetensors(header, end);
  let at = file.length - end;
  for (const { bytes } of Object.values(tensors)) {
    file.set(bytes, at);
    at += bytes.length;
  }
  return { "config.json": json(config), "model.safetensors": file };
}

/** config.json and pytorch_model.bin. */
export function torchFiles({ config, tensors }: Head): HeadFiles {
  const described = Object.entries(tensors).map(([name, { dtype, shape, bytes }], i) => {
    const [storage, width] = STORAGE[dtype] ?? ["", 1];
    return [name, { storage, key: String(i), elements: bytes.length / width, shape }] as const;
  });
  const storages = Object.values(tensors).map(({ bytes }, i) => [String(i), bytes] as const);
  const file = torchFile(Object.fromEntries(described), Object.fromEntries(storages));
  return { "config.json": json(config), "pytorch_model.bin": file };
}

function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
