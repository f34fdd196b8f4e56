/** Rows and tokens of a causal draft. */
import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const OWN_ROWS = kernelOf("round/own_rows", { LAST: false }, {
  name: "own_rows",
  bindings: ["rows", "slots", "own"],
  constants: [],
});
const OWN_LAST_ROWS = kernelOf("round/own_rows", { LAST: true }, {
  name: "own_last_rows",
  bindings: ["rows", "slots", "own", "batch_slots", "last"],
  constants: [],
});
const PUT_DRAFTS = kernelOf("round/put_drafts", {}, {
  name: "put_drafts",
  bindings: ["batch_slots", "chosen", "drafts"],
  constants: ["STEP", "MOST_ROWS"],
});

interface OwnRows {
  /** `Row`s whose tokens are one ahead of their cells. */
  readonly rows: Operand;
  readonly slots: Operand;
  /** The same at their own cells. */
  readonly own: Operand;
}

/** Records the own rows of `count` rows. */
export function ownRows(buffers: OwnRows, count: number): Dispatch {
  return dispatch(OWN_ROWS, { buffers, constants: {}, workgroups: [count] });
}

/** Records the own row of each sequence's last row. */
export function ownLastRows(
  { batchSlots, ...buffers }: OwnRows & {
    /** Slot of each sequence, u32 [batch]. */
    readonly batchSlots: Operand;
    /** Row of each sequence, u32 [batch]. */
    readonly last: Operand;
  },
  batch: number,
): Dispatch {
  return dispatch(OWN_LAST_ROWS, {
    buffers: { ...buffers, batch_slots: batchSlots },
    constants: {},
    workgroups: [batch],
  });
}

/** Records what was chosen for each sequence as its draft token `step`. */
export function putDrafts(
  { batchSlots, ...buffers }: {
    readonly batchSlots: Operand;
    /** u32 [batch] */
    readonly chosen: Operand;
    /** What is drafted for each slot, [slots, draftWords(mostRows)]. */
    readonly drafts: Operand;
  },
  { batch, step, mostRows }: {
    readonly batch: number;
    readonly step: number;
    readonly mostRows: number;
  },
): Dispatch {
  return dispatch(PUT_DRAFTS, {
    buffers: { ...buffers, batch_slots: batchSlots },
    constants: { STEP: step, MOST_ROWS: mostRows },
    workgroups: [batch],
    label: `put_drafts.${step}`,
  });
}
