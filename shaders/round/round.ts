import { type Dispatch, dispatch, kernel, type Operand } from "../../src/gpu/kernel.ts";
import matchCode from "./accept.wgsl" with { type: "text" };
import commitCode from "./accept_commit.wgsl" with { type: "text" };
import promptBody from "./accept_prompt.wgsl" with { type: "text" };
import draftBody from "./draft_rows.wgsl" with { type: "text" };
import draftRow from "../fragments/draft_row.wgsl" with { type: "text" };
import rowsCode from "../fragments/rows.wgsl" with { type: "text" };
import verifyBody from "./verify_rows.wgsl" with { type: "text" };

const DRAFT_ROWS = kernel("draft_rows", [rowsCode, draftRow, draftBody].join("\n"), {
  bindings: ["lanes", "slots", "drafts", "rows"],
  constants: ["STEP"],
});
const VERIFY_ROWS = kernel("verify_rows", [rowsCode, verifyBody].join("\n"), {
  bindings: ["lanes", "slots", "drafts", "rows"],
  constants: ["NUM_STEPS"],
});
const ACCEPT = kernel("accept", [rowsCode, matchCode, commitCode].join("\n"), {
  bindings: ["lanes", "rows", "chosen", "drafts", "slots", "extend", "last", "results"],
  constants: ["NUM_STEPS"],
});
const ACCEPT_PROMPT = kernel("accept_prompt", [rowsCode, promptBody].join("\n"), {
  bindings: ["lanes", "last", "chosen", "slots", "extend", "results"],
  constants: [],
});

interface RowSources {
  readonly lanes: Operand;
  readonly slots: Operand;
  readonly drafts: Operand;
  readonly rows: Operand;
}

/** Records the rows that feed draft token `step`: one a lane. */
export function draftRows(
  buffers: RowSources,
  shape: { readonly batch: number; readonly step: number },
): Dispatch {
  return dispatch(DRAFT_ROWS, {
    buffers,
    constants: { STEP: shape.step },
    workgroups: [shape.batch],
    label: `draft_rows.${shape.step}`,
  });
}

/** Records the verify rows: numSteps + 1 a lane. */
export function verifyRows(
  buffers: RowSources,
  shape: { readonly batch: number; readonly numSteps: number },
): Dispatch {
  return dispatch(VERIFY_ROWS, {
    buffers,
    constants: { NUM_STEPS: shape.numSteps },
    workgroups: [shape.batch * (shape.numSteps + 1)],
  });
}

/** What acceptance reads and writes, whatever its rule; see accept_commit.wgsl. */
export interface AcceptBuffers {
  readonly lanes: Operand;
  readonly rows: Operand;
  readonly chosen: Operand;
  readonly drafts: Operand;
  readonly slots: Operand;
  readonly extend: Operand;
  readonly last: Operand;
  readonly results: Operand;
}

/** Records acceptance of each lane's chain: drafts are kept while the target chose the same. */
export function accept(
  buffers: AcceptBuffers,
  shape: { readonly batch: number; readonly numSteps: number },
): Dispatch {
  return dispatch(ACCEPT, {
    buffers,
    constants: { NUM_STEPS: shape.numSteps },
    workgroups: [shape.batch],
  });
}

/** Records the end of a prefill. */
export function acceptPrompt(
  buffers: {
    readonly lanes: Operand;
    readonly last: Operand;
    readonly chosen: Operand;
    readonly slots: Operand;
    readonly extend: Operand;
    readonly results: Operand;
  },
): Dispatch {
  return dispatch(ACCEPT_PROMPT, { buffers, constants: {}, workgroups: [1] });
}
