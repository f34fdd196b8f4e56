/** Rows that `eyrie convert --quantize` has stored in blocks, from a file to the GPU. */
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { GROUP, type Quantization, scaleBytes, WEIGHT_BYTES } from "../../gpu/weight_format.ts";
import { BLOCK_BYTES, blocksToLanes, blockValues } from "../checkpoint/quantized/blocks.ts";
import type { Segment } from "./shards.ts";
import { bytesOf, type Reading, readRows, type RowStream, UPLOAD_BLOCK } from "./upload.ts";

/** Rows stored in blocks, as `eyrie convert --quantize` writes them. */
interface Blocks {
  readonly from: Quantization;
  readonly cols: number;
}

/** How rows stored in blocks are read, if each takes `bytes` once it is uploaded. */
function readingOf({ from, cols }: Blocks, bytes: number): Reading {
  const most = Math.max(1, Math.floor(UPLOAD_BLOCK / bytes));
  return { rowBytes: cols / GROUP * BLOCK_BYTES[from], most };
}

/** Uploads rows stored in blocks in lane order. */
export function placeBlocks(
  stream: RowStream,
  matrix: Matrix,
  segments: readonly Segment[],
  from: Quantization,
): void {
  const { cols, lanes, shards } = matrix;
  const order = blocksToLanes({ format: from, cols, lanes });
  const bytes = cols * WEIGHT_BYTES[from];
  readRows(stream, segments, readingOf({ from, cols }, bytes), (shard, row, part) => {
    const { operand, scales } = shards[shard] as Shard;
    const placed = order(part);
    stream.upload(operand, row * bytes, bytesOf(placed.words));
    stream.upload(scales as Operand, row * scaleBytes(from, cols), bytesOf(placed.scales));
  });
}

/** Uploads rows stored in blocks as float32, which is exact. */
export function widenBlocks(
  stream: RowStream,
  segments: readonly Segment[],
  outs: readonly Operand[],
  { from, cols }: Blocks,
): void {
  readRows(stream, segments, readingOf({ from, cols }, 4 * cols), (shard, row, part) => {
    stream.upload(outs[shard] as Operand, row * cols * 4, bytesOf(blockValues(part, from)));
  });
}
