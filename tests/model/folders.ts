/** Small checkpoints for tests: built in memory, or written to a temporary folder. */
import { checkpointOf, storedCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { type Folder, memoryFolder } from "../../src/model/files/folder.ts";
import type { TensorSpec } from "../../src/model/weights/tensors.ts";

/** Header entry of a safetensors file. */
export interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** File name -> bytes, or JSON to be written. */
export type Files = Readonly<Record<string, unknown>>;

const WIDTH: Readonly<Record<string, number>> = { BOOL: 1, U8: 1, BF16: 2, F32: 4, I32: 4, I64: 8 };

/** A safetensors file: `header` as JSON (or as the text given), then `dataBytes` bytes 0, 1, 2... */
export function safetensors(header: unknown, dataBytes: number): Uint8Array<ArrayBuffer> {
  const json = typeof header === "string" ? header : JSON.stringify(header);
  const text = new TextEncoder().encode(json);
  const file = new Uint8Array(8 + text.length + dataBytes);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  for (let i = 0; i < dataBytes; i++) file[8 + text.length + i] = i;
  return file;
}

/** A safetensors file with tensors of these shapes, one after the other. */
export function tensorFile(
  shapes: Readonly<Record<string, readonly number[]>>,
  dtypes: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const header: Record<string, Entry> = {};
  let at = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const dtype = dtypes[name] ?? "BF16";
    const size = shape.reduce((product, n) => product * n, WIDTH[dtype] ?? 1);
    header[name] = { dtype, shape, data_offsets: [at, at += size] };
  }
  return safetensors(header, at);
}

/** Name -> shape of what a model needs. */
export function shapesOf(specs: readonly TensorSpec[]): Record<string, readonly number[]> {
  return Object.fromEntries(specs.map(({ name, shape }) => [name, shape]));
}

/** A checkpoint in memory, named `toy`. */
export function toyCheckpoint(files: Files): Checkpoint {
  return checkpointOf(toyFolder(files));
}

/** The same with its tensors as they are stored. */
export function storedToy(files: Files): Checkpoint {
  return storedCheckpoint(toyFolder(files));
}

function toyFolder(files: Files): Folder {
  const bytes = new Map(Object.entries(files).map(([file, content]) => [file, encoded(content)]));
  return memoryFolder("toy", (file) => bytes.get(file));
}

/** Runs `use` with a temporary folder that holds `files`, and removes it afterwards. */
export function withFolder(files: Files, use: (folder: string) => void): void {
  const folder = Deno.makeTempDirSync({ prefix: "eyrie-test-" });
  try {
    for (const [file, content] of Object.entries(files)) {
      Deno.writeFileSync(`${folder}/${file}`, encoded(content));
    }
    use(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

function encoded(content: unknown): Uint8Array<ArrayBuffer> {
  if (content instanceof Uint8Array) return new Uint8Array(content);
  return new TextEncoder().encode(typeof content === "string" ? content : JSON.stringify(content));
}
