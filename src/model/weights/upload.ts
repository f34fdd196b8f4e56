/** Rows from files, and writes to the GPU. */
import { separateBuffers } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { vectorBytes } from "./loader.ts";
import type { Segment } from "./shards.ts";

/** Bytes read and uploaded at a time: small enough to stay in cache, measured fastest in Deno. */
export const UPLOAD_BLOCK: number = 4 << 20;
/** wgpu keeps staging copies of writeBuffer's data until the next submit; these two bound that memory. */
const SUBMIT_EVERY = 64 << 20;
const DRAIN_EVERY = 128 << 20;

/** Writes to a part of an operand. */
type Upload = (to: Operand, at: number, part: Uint8Array) => void;

/** Where rows come from and where they go. */
export interface RowStream {
  readonly checkpoint: Pick<Checkpoint, "read">;
  readonly upload: Upload;
  /** UPLOAD_BLOCK bytes for what was just read. */
  readonly block: Uint8Array<ArrayBuffer>;
}

/** How rows are read: the bytes of a row in the file, and the most rows at a time. */
export interface Reading {
  readonly rowBytes: number;
  readonly most: number;
}

/** Reads the rows of `segments` and passes each part, in a buffer of its own, with the shard and row where it goes. */
export function readRows(
  { checkpoint }: RowStream,
  segments: readonly Segment[],
  { rowBytes, most }: Reading,
  put: (shard: number, row: number, part: Uint8Array<ArrayBuffer>) => void,
): void {
  for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
    for (let done = 0; done < rows; done += most) {
      const part = new Uint8Array(Math.min(most, rows - done) * rowBytes);
      checkpoint.read(tensor, (tensorRow + done) * rowBytes, part);
      put(shard, shardRow + done, part);
    }
  }
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

/** The bytes of an array that has its buffer to itself. */
export function bytesOf({ buffer }: { readonly buffer: ArrayBuffer }): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer);
}

/** Returns a function that writes to a part of an operand; it submits and drains so that staging memory is bounded. */
export function uploader(gpu: Gpu): Upload {
  const { queue } = gpu.device;
  let sinceSubmit = 0;
  let sinceDrain = 0;
  return ({ buffer, offset = 0 }: Operand, at: number, part: Uint8Array): void => {
    queue.writeBuffer(buffer, offset + at, part as Uint8Array<ArrayBuffer>);
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
