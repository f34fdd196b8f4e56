import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const COUNT_TOKENS = kernelOf("sample/count_tokens")({}, {
  name: "count_tokens",
  bindings: ["batch_slots", "results", "counts"],
  constants: ["VOCAB", "RESULT"],
});

/** Records that what a round or a prefill emitted is counted, for the penalties of the next. */
export function countTokens(
  { batchSlots, ...buffers }: {
    /** Slot of each sequence, u32 [batch]. */
    readonly batchSlots: Operand;
    /** u32 [batch, resultWords] */
    readonly results: Operand;
    /** u32 [slots, vocab] */
    readonly counts: Operand;
  },
  { batch, resultWords, vocab }: {
    readonly batch: number;
    readonly resultWords: number;
    readonly vocab: number;
  },
): Dispatch {
  return dispatch(COUNT_TOKENS, {
    buffers: { ...buffers, batch_slots: batchSlots },
    constants: { VOCAB: vocab, RESULT: resultWords },
    workgroups: [batch],
  });
}
