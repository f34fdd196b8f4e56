/** Rows of a quantized checkpoint, whose groups have words of scales, from a file to the GPU. */
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { type Prequantized, scaleBytes, WEIGHT_BYTES } from "../../gpu/weight_format.ts";
import { dequantized } from "../checkpoint/quantized/dequantize.ts";
import { toLanes } from "../checkpoint/quantized/lane_order.ts";
import { rowWords } from "../checkpoint/quantized/modules.ts";
import type { Segment } from "./shards.ts";
import { bytesOf, type Reading, readRows, type RowStream, UPLOAD_BLOCK } from "./upload.ts";

/** Rows of a quantized checkpoint. */
interface Grouped {
  readonly from: Prequantized;
  readonly cols: number;
}

/** How rows of a quantized checkpoint are read, if each takes `bytes` once it is uploaded. */
function readingOf(grouped: Grouped, bytes: number): Reading {
  // The scales of four rows fill whole words in every format.
  const most = 4 * Math.max(1, Math.floor(UPLOAD_BLOCK / bytes / 4));
  return { rowBytes: rowBytes(grouped), most };
}

function rowBytes({ from, cols }: Grouped): number {
  return 4 * rowWords({ format: from, cols }).all;
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
  const grouped = { from, cols };
  readRows(stream, segments, readingOf(grouped, rowBytes(grouped)), (shard, row, part) => {
    const { operand, scales } = shards[shard] as Shard;
    const packed = order(new Uint32Array(part.buffer));
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
  readRows(stream, segments, readingOf({ from, cols }, 4 * cols), (shard, row, part) => {
    const values = dequantized(new Uint32Array(part.buffer), { format: from, cols });
    stream.upload(outs[shard] as Operand, row * cols * 4, bytesOf(values));
  });
}
