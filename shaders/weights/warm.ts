import { bytesOf, type Dispatch, dispatch, kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { shader } from "../shader.ts";

/** Reads of an invocation, all on their way at once. */
const EACH = 8;
const THREADS = 128;
/** What an invocation reads stands for so many bytes: a cache takes whole sectors. */
const SECTOR = 32;

const WARM = kernel("warm", shader("weights/warm", { counts: { EACH } }), {
  bindings: ["weights", "sink"],
  constants: ["VECTORS"],
});

/**
 * Records reads of matrices that a later dispatch multiplies by, so that a cache has them by then. Beside a
 * dispatch that leaves memory idle, without a barrier between: neither writes what the other touches.
 *
 * @param sink 4 bytes that nothing else in the pass touches, for each shard: barriers go by buffers.
 */
export function warm(
  matrix: Matrix,
  { sink, label }: { readonly sink: Operand; readonly label: string },
): Dispatch[] {
  return matrix.shards.map(({ operand: weights }) => {
    const bytes = bytesOf(weights);
    return dispatch(WARM, {
      buffers: { weights, sink },
      constants: { VECTORS: Math.floor(bytes / 16) },
      workgroups: [Math.ceil(bytes / SECTOR / THREADS / EACH)],
      label,
      work: { bytes, flops: 0 },
    });
  });
}
