import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const ALLOCATE = kernelOf("round/allocate")({}, {
  name: "allocate",
  bindings: ["batch_slots", "slots", "budget", "drafts"],
  constants: ["ROWS", "MAX_ROWS"],
});

/** Word of `Budget` in allocate.wgsl from which the intercepts are, and the drafts of each sequence. */
export const BUDGET_INTERCEPTS = 4;
export const BUDGET_MAX = 20;
/** u32 words of a `Budget`. */
export const BUDGET_WORDS = 148;

/** Records the choice of the drafts that are verified, by the draft's confidence in them. */
export function allocate(
  { batchSlots, ...buffers }: {
    /** Slot of each sequence of the batch, u32 [batch]. */
    readonly batchSlots: Operand;
    readonly slots: Operand;
    /** u32 [BUDGET_WORDS] */
    readonly budget: Operand;
    readonly drafts: Operand;
  },
  { batch, rows, maxRows }: {
    /** 1 to 128. */
    readonly batch: number;
    /** Most verify rows of a sequence, 2 to 17. */
    readonly rows: number;
    /** Rows that a slot may have in any round. */
    readonly maxRows: number;
  },
): Dispatch {
  return dispatch(ALLOCATE, {
    // The kernel computes the batch from its size.
    buffers: { ...buffers, batch_slots: { ...batchSlots, size: 4 * batch } },
    constants: { ROWS: rows, MAX_ROWS: maxRows },
    workgroups: [1],
  });
}
