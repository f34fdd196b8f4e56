import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { ROW_BYTES } from "../lib/row_blocks.ts";
import { kernelOf } from "../shader.ts";

const VERIFY_PACKED = kernelOf("round/verify_packed")({}, {
  name: "verify_packed",
  bindings: ["batch_slots", "slots", "drafts", "rows", "extend", "last"],
  constants: ["ROWS", "FIRST_ROWS", "MAX_ROWS"],
});

/** Invocations of a workgroup of verify_packed.wgsl. */
const LANES = 128;

/** Records the verify rows of chains, those of a sequence right after those of the one before. */
export function verifyPacked(
  { batchSlots, slots, drafts, rows, extend, last }: {
    /** Slot of each sequence of the batch, u32 [batch]. */
    readonly batchSlots: Operand;
    readonly slots: Operand;
    readonly drafts: Operand;
    /** `Row`s of verify and of draft-extend, [count] each. */
    readonly rows: Operand;
    readonly extend: Operand;
    /** See `firstRows`. */
    readonly last: Operand;
  },
  { batch, count, rows: most, firstRows, maxRows }: {
    /** 1 to 128. */
    readonly batch: number;
    /** Rows of the round: as many as its sequences have, or more. */
    readonly count: number;
    /** Most verify rows of a sequence, the pending token included. */
    readonly rows: number;
    /** Word of `last` from which the first row of each sequence goes, u32 [batch]. */
    readonly firstRows: number;
    /** Rows that a slot may have in any round. */
    readonly maxRows: number;
  },
): Dispatch {
  return dispatch(VERIFY_PACKED, {
    // The kernel computes both numbers from the sizes: one pipeline serves them all.
    buffers: {
      slots,
      drafts,
      extend,
      last,
      batch_slots: { ...batchSlots, size: 4 * batch },
      rows: { ...rows, size: ROW_BYTES * count },
    },
    constants: { ROWS: most, FIRST_ROWS: firstRows, MAX_ROWS: maxRows },
    workgroups: [Math.ceil(count / LANES)],
  });
}
