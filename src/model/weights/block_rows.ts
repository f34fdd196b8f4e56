/** Rows that `eyrie convert --quantize` has stored in blocks, from a file to the GPU. */
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { GROUP, type Quantization, scaleBytes, WEIGHT_BYTES } from "../../gpu/weight_format.ts";
import { BLOCK_BYTES, blocksToLanes, blockValues } from "../checkpoint/quantized/blocks.ts";
import type { Segment } from "./shards.ts";
import { bytesOf, type RowStream, UPLOAD_BLOCK } from "./upload.ts";

/** Rows stored in blocks, as `eyrie convert --quantize` writes them. */
interface Blocks {
  readonly from: Quantization;
  readonly cols: number;
}

/** Reads rows that are stored in blocks, at most UPLOAD_BLOCK at a time with `bytes` counted per row. */
function readBlocks(
  { checkpoint }: RowStream,
  segments: readonly Segment[],
  { from, cols, bytes }: Blocks & { readonly bytes: number },
  put: (shard: number, row: number, blocks: Uint8Array<ArrayBuffer>) => void,
) {
  const rowBytes = cols / GROUP * BLOCK_BYTES[from];
  const most = Math.max(1, Math.floor(UPLOAD_BLOCK / bytes));
  for (const { tensor, tensorRow, rows, shard, shardRow } of segments) {
    for (let done = 0; done < rows; done += most) {
      const part = new Uint8Array(Math.min(most, rows - done) * rowBytes);
      checkpoint.read(tensor, (tensorRow + done) * rowBytes, part);
      put(shard, shardRow + done, part);
    }
  }
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
  readBlocks(
    stream,
    segments,
    { from, cols, bytes: cols * WEIGHT_BYTES[from] },
    (shard, row, part) => {
      const { operand, scales } = shards[shard] as Shard;
      const placed = order(part);
      stream.upload(operand, row * cols * WEIGHT_BYTES[from], bytesOf(placed.words));
      stream.upload(scales as Operand, row * scaleBytes(from, cols), bytesOf(placed.scales));
    },
  );
}

/** Uploads rows stored in blocks as float32, which is exact. */
export function widenBlocks(
  stream: RowStream,
  segments: readonly Segment[],
  outs: readonly Operand[],
  { from, cols }: Blocks,
): void {
  readBlocks(stream, segments, { from, cols, bytes: 4 * cols }, (shard, row, part) => {
    stream.upload(outs[shard] as Operand, row * cols * 4, bytesOf(blockValues(part, from)));
  });
}
