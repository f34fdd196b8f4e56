/**
 * Heads whose rope pairs are rows 2i and 2i + 1 (ERNIE 4.5) are loaded with their even rows before their odd ones: then
 * pair i is rows i and i + half a head, as in Llama. q and k are reordered alike, so their dot product stays the same.
 */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";

/** Bytes `at` and following of a tensor whose rows are in the order that `evenRowsFirst` says. */
export function readInOrder(
  checkpoint: Pick<Checkpoint, "read">,
  tensor: TensorInfo,
  at: number,
  into: Uint8Array,
): void {
  const { evenRowsFirst: head, shape: [rows = 1], size } = tensor;
  if (head === undefined) return checkpoint.read(tensor, at, into);
  const rowBytes = size / rows;
  for (let done = 0; done < into.length;) {
    const row = Math.floor((at + done) / rowBytes);
    const skipped = (at + done) % rowBytes;
    const part = into.subarray(done, done + rowBytes - skipped);
    checkpoint.read(tensor, storedRow(row, head) * rowBytes + skipped, part);
    done += part.length;
  }
}

/** The file's row that row `row` is. */
function storedRow(row: number, head: number): number {
  const within = row % head;
  const half = head / 2;
  return row - within + (within < half ? 2 * within : 2 * (within - half) + 1);
}
