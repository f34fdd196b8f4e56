/** Rows of bf16, f16 or f32, from a file to the GPU. */
import type { Operand } from "../../gpu/kernel.ts";
import { type FloatFormat, WEIGHT_BYTES } from "../../gpu/weight_format.ts";
import { widen } from "../files/widen.ts";
import type { Segment } from "./shards.ts";
import { bytesOf, type RowStream, UPLOAD_BLOCK } from "./upload.ts";

/** Uploads rows as they are. */
export function copyRows(
  { checkpoint, upload, block }: RowStream,
  { tensor, tensorRow, rows, shard, shardRow }: Segment,
  outs: readonly Operand[],
  rowBytes: number,
): void {
  const size = rows * rowBytes;
  for (let done = 0; done < size; done += UPLOAD_BLOCK) {
    const part = block.subarray(0, Math.min(UPLOAD_BLOCK, size - done));
    checkpoint.read(tensor, tensorRow * rowBytes + done, part);
    upload(outs[shard] as Operand, shardRow * rowBytes + done, part);
  }
}

/** Uploads rows as float32, which is exact: every bf16 and f16 number is one. */
export function widenRows(
  { checkpoint, upload, block }: RowStream,
  { tensor, tensorRow, rows, shard, shardRow }: Segment,
  outs: readonly Operand[],
  { from, cols }: { readonly from: FloatFormat; readonly cols: number },
): void {
  const bytes = WEIGHT_BYTES[from];
  const [size, most] = [rows * cols, UPLOAD_BLOCK / 4];
  for (let done = 0; done < size; done += most) {
    const part = block.subarray(0, bytes * Math.min(most, size - done));
    checkpoint.read(tensor, bytes * (tensorRow * cols + done), part);
    const at = 4 * (shardRow * cols + done);
    upload(outs[shard] as Operand, at, bytesOf(widen(part, tensor.dtype)));
  }
}
