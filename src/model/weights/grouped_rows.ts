/** Rows of a quantized checkpoint, whose groups have words of scales, from a file to the GPU. */
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { type Prequantized, scaleBytes, WEIGHT_BYTES } from "../../gpu/weight_format.ts";
import { dequantized } from "../checkpoint/quantized/dequantize.ts";
import { toLanes } from "../checkpoint/quantized/lane_order.ts";
import { rowWords } from "../checkpoint/quantized/modules.ts";
import type { Segment } from "./shards.ts";
import { bytesOf, type RowStream, UPLOAD_BLOCK } from "./upload.ts";

/** Rows of a quantized checkpoint. */
interface Grouped {
  readonly from: Prequantized;
  readonly cols: number;
}

/** Reads rows of a quantized checkpoint, at most UPLOAD_BLOCK at a time with `bytes` counted per row. */
function readGrouped(
  { checkpoint }: RowStream,
  segments: readonly Segment[],
  { from, cols, bytes }: Grouped & { readonly bytes: number },
  put: (shard: number, row: number, words: Uint32Array<ArrayBuffer>) => void,
) {
  const rowBytes = 4 * rowWords({ format: from, cols }).all;
  // The scales of four rows fill whole words in every format.
  const most = 4 * Math.max(1, Math.floor(UPLOAD_BLOCK / bytes / 4));
  for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
    for (let done = 0; done < rows; done += most) {
      const part = new Uint32Array(Math.min(most, rows - done) * rowBytes / 4);
      checkpoint.read(tensor, (tensorRow + done) * rowBytes, bytesOf(part));
      put(shard, shardRow + done, part);
    }
  }
}

/** Uploads rows of a quantized checkpoint in lane order. */
export function placeGrouped(
  stream: RowStream,
  matrix: Matrix,
  segments: readonly Segment[],
  from: Prequantized,
): void {
  const { cols, lanes, shards } = matrix;
  const order = toLanes({ cols, lanes, format: from });
  const bytes = 4 * rowWords({ format: from, cols }).all;
  readGrouped(stream, segments, { from, cols, bytes }, (shard, row, part) => {
    const { operand, scales } = shards[shard] as Shard;
    const packed = order(part);
    stream.upload(operand, row * cols * WEIGHT_BYTES[from], bytesOf(packed.words));
    stream.upload(scales as Operand, row * scaleBytes(from, cols), bytesOf(packed.scales));
  });
}

/** Uploads rows of a quantized checkpoint as float32. */
export function dequantizeGrouped(
  stream: RowStream,
  segments: readonly Segment[],
  outs: readonly Operand[],
  { from, cols }: Grouped,
): void {
  readGrouped(stream, segments, { from, cols, bytes: 4 * cols }, (shard, row, part) => {
    const values = dequantized(part, { format: from, cols });
    stream.upload(outs[shard] as Operand, row * cols * 4, bytesOf(values));
  });
}
