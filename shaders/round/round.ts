import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { Slots } from "../../src/gpu/link.ts";
import { shader } from "../shader.ts";

const DRAFT_ROWS = kernel("draft_rows", shader("round/draft_rows"), {
  bindings: ["batch_slots", "slots", "drafts", "rows"],
  constants: ["STEP", "MOST_ROWS"],
});
const VERIFY_ROWS = verifyKernel("verify_rows");
const VERIFY_TREE = verifyKernel("verify_tree");

function verifyKernel(name: "verify_rows" | "verify_tree") {
  return kernel(name, shader(`round/${name}`), {
    bindings: ["batch_slots", "slots", "drafts", "rows"],
    constants: ["ROWS", "MOST_ROWS"],
  });
}

/**
 * A kernel of acceptance.
 *
 * @param variant what the slots of accept_commit.wgsl stand for, and the counts of those fragments.
 */
export function acceptKernel<const Constant extends string>(
  name: string,
  variant: { readonly slots: Slots; readonly counts?: Readonly<Record<string, number>> },
  constants: readonly Constant[],
): Kernel<
  keyof ReturnType<typeof bound<AcceptBuffers>>,
  "ROWS" | "DEPTH" | "MOST_ROWS" | Constant
> {
  return kernel(name, shader("round/accept_commit", variant), {
    bindings: ["batch_slots", "rows", "chosen", "drafts", "slots", "extend", "last", "results"],
    constants: ["ROWS", "DEPTH", "MOST_ROWS", ...constants],
  });
}

const ACCEPT = acceptKernel("accept", {
  slots: { walk: "round/accept_chain", accepts: "round/accept" },
}, []);
const ACCEPT_TREE = acceptKernel("accept_tree", {
  slots: { walk: "round/accept_tree" },
}, ["KEPT"]);
const ACCEPT_PROMPT = kernel("accept_prompt", shader("round/accept_prompt"), {
  bindings: ["batch_slots", "last", "chosen", "slots", "extend", "results"],
  constants: [],
});

interface RowSources {
  /** Slot of each sequence of the batch, u32 [batch]. */
  readonly batchSlots: Operand;
  readonly slots: Operand;
  readonly drafts: Operand;
  readonly rows: Operand;
}

/** Rows of a forward, and how what is drafted for a slot is laid out. */
interface VerifyRowsShape {
  readonly batch: number;
  /** Verify rows a sequence, the pending token included. */
  readonly rows: number;
  /** Rows that a slot may have in any round. */
  readonly mostRows: number;
}

/** Records the rows that feed draft token `step`: one a sequence. */
export function draftRows(
  buffers: RowSources,
  shape: Omit<VerifyRowsShape, "rows"> & { readonly step: number },
): Dispatch {
  const { batch, step, mostRows } = shape;
  return dispatch(DRAFT_ROWS, {
    buffers: bound(buffers),
    constants: { STEP: step, MOST_ROWS: mostRows },
    workgroups: [batch],
    label: `draft_rows.${step}`,
  });
}

/** Records the verify rows of chains. */
export function verifyRows(buffers: RowSources, shape: VerifyRowsShape): Dispatch {
  return dispatch(VERIFY_ROWS, verifyLaunch(buffers, shape));
}

/** Records the verify rows of trees. */
export function verifyTree(buffers: RowSources, shape: VerifyRowsShape): Dispatch {
  return dispatch(VERIFY_TREE, verifyLaunch(buffers, shape));
}

function verifyLaunch(sources: RowSources, { batch, rows, mostRows }: VerifyRowsShape) {
  const constants = { ROWS: rows, MOST_ROWS: mostRows };
  return { buffers: bound(sources), constants, workgroups: [batch * rows] as const };
}

/** Buffers by the names of the shaders. */
export function bound<Buffers extends { readonly batchSlots: Operand }>(
  { batchSlots, ...others }: Buffers,
): Omit<Buffers, "batchSlots"> & { readonly batch_slots: Operand } {
  return { ...others, batch_slots: batchSlots };
}

/** What acceptance reads and writes, whatever its rule; see accept_commit.wgsl. */
export interface AcceptBuffers {
  readonly batchSlots: Operand;
  readonly rows: Operand;
  readonly chosen: Operand;
  readonly drafts: Operand;
  readonly slots: Operand;
  readonly extend: Operand;
  readonly last: Operand;
  readonly results: Operand;
}

/** What is accepted of: chains of `depth` drafts, or trees as deep. */
export interface AcceptShape extends VerifyRowsShape {
  readonly depth: number;
}

/** The constants that every kernel of acceptance has. */
export function acceptConstants(
  { rows, depth, mostRows }: AcceptShape,
): Record<"ROWS" | "DEPTH" | "MOST_ROWS", number> {
  return { ROWS: rows, DEPTH: depth, MOST_ROWS: mostRows };
}

/** Records acceptance of each sequence's chain: drafts are kept while the target chose the same. */
export function accept(buffers: AcceptBuffers, shape: AcceptShape): Dispatch {
  const constants = acceptConstants(shape);
  return dispatch(ACCEPT, { buffers: bound(buffers), constants, workgroups: [shape.batch] });
}

/**
 * Records acceptance of each sequence's tree: from its root on to the child that the target chose.
 *
 * @param shape.kept word of `last` from which the verify row of each extend row goes,
 * u32 [batch, depth + 1], 0xffffffff for those that are padding.
 */
export function acceptTree(
  buffers: AcceptBuffers,
  shape: AcceptShape & { readonly kept: number },
): Dispatch {
  const constants = { ...acceptConstants(shape), KEPT: shape.kept };
  return dispatch(ACCEPT_TREE, { buffers: bound(buffers), constants, workgroups: [shape.batch] });
}

/** Records the end of a prefill. */
export function acceptPrompt(
  buffers: {
    readonly batchSlots: Operand;
    readonly last: Operand;
    readonly chosen: Operand;
    readonly slots: Operand;
    readonly extend: Operand;
    readonly results: Operand;
  },
): Dispatch {
  return dispatch(ACCEPT_PROMPT, { buffers: bound(buffers), constants: {}, workgroups: [1] });
}
