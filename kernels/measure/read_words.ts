import { bytesOf, type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const READ_WORDS = kernelOf("measure/read_words")({}, {
  name: "read_words",
  bindings: ["words", "out"],
  constants: ["GROUPS"],
});

/** Records a read of all of `words`, to measure bandwidth; out is [groups], sums of u32. */
export function readWords(
  buffers: { readonly words: Operand; readonly out: Operand },
  shape: { readonly groups: number },
): Dispatch {
  return dispatch(READ_WORDS, {
    buffers,
    constants: { GROUPS: shape.groups },
    workgroups: [shape.groups],
    work: { bytes: bytesOf(buffers.words), flops: bytesOf(buffers.words) / 4 },
  });
}
