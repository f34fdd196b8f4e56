/** Rows and tokens of a standalone draft model. */
import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

interface StandaloneRowsParameters {
  /** Whether only the last row of each sequence is made. */
  readonly LAST: boolean;
}

const ROWS = kernelOf<StandaloneRowsParameters>("round/standalone_rows");

const STANDALONE_ROWS = ROWS({ LAST: false }, {
  name: "standalone_rows",
  bindings: ["rows", "slots", "out"],
  constants: [],
});
const STANDALONE_LAST_ROWS = ROWS({ LAST: true }, {
  name: "standalone_last_rows",
  bindings: ["rows", "slots", "out", "batch_slots", "last"],
  constants: [],
});
const PUT_DRAFTS = kernelOf("round/put_drafts")({}, {
  name: "put_drafts",
  bindings: ["batch_slots", "chosen", "drafts"],
  constants: ["STEP", "MAX_ROWS"],
});

interface StandaloneRows {
  /** `Row`s whose tokens are one ahead of their cells, as an EAGLE head has them. */
  readonly rows: Operand;
  readonly slots: Operand;
  /** The same rows at the cells of their tokens. */
  readonly out: Operand;
}

/** Records `out` of `count` rows. */
export function standaloneRows(buffers: StandaloneRows, count: number): Dispatch {
  return dispatch(STANDALONE_ROWS, { buffers, constants: {}, workgroups: [count] });
}

/** Records `out` of the last row of each sequence, [batch]. */
export function standaloneLastRows(
  { batchSlots, ...buffers }: StandaloneRows & {
    /** Slot of each sequence, u32 [batch]. */
    readonly batchSlots: Operand;
    /** Row of each sequence, u32 [batch]. */
    readonly last: Operand;
  },
  batch: number,
): Dispatch {
  return dispatch(STANDALONE_LAST_ROWS, {
    buffers: { ...buffers, batch_slots: batchSlots },
    constants: {},
    workgroups: [batch],
  });
}

/** Records that what was chosen for each sequence becomes its draft token `step`. */
export function putDrafts(
  { batchSlots, ...buffers }: {
    readonly batchSlots: Operand;
    /** u32 [batch] */
    readonly chosen: Operand;
    /** What is drafted for each slot, [slots, draftWords(maxRows)]. */
    readonly drafts: Operand;
  },
  { batch, step, maxRows }: {
    readonly batch: number;
    readonly step: number;
    readonly maxRows: number;
  },
): Dispatch {
  return dispatch(PUT_DRAFTS, {
    buffers: { ...buffers, batch_slots: batchSlots },
    constants: { STEP: step, MAX_ROWS: maxRows },
    workgroups: [batch],
    label: `put_drafts.${step}`,
  });
}
