import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";

const DRAFT_ROWS = kernelOf("round/draft_rows")({}, {
  name: "draft_rows",
  bindings: ["batch_slots", "slots", "drafts", "rows"],
  constants: ["STEP", "MAX_ROWS"],
});
const [DRAFT_ENDS, RESETTING_ENDS] = [
  draftEndsKernel("draft_ends", false),
  draftEndsKernel("draft_ends_scale", true),
];
const VERIFY_ROWS = verifyKernel("verify_rows");
const VERIFY_TREE = verifyKernel("verify_tree");

interface DraftEndsParameters {
  /** Whether the scales of inputs of matmuls become the largest. */
  readonly RESETS: boolean;
}

function draftEndsKernel(name: string, RESETS: boolean) {
  const ends = ["last", "rows", "q", "x", "end_rows", "end_q", "end_x"];
  return kernelOf<DraftEndsParameters>("round/draft_ends")({ RESETS }, {
    name,
    bindings: RESETS ? [...ends, "reduced"] : ends,
    constants: ["Q_COLS", "COLS"],
  });
}

function verifyKernel(name: "verify_rows" | "verify_tree") {
  return kernelOf(`round/${name}`)({}, {
    name,
    bindings: ["batch_slots", "slots", "drafts", "rows"],
    constants: ["ROWS", "MAX_ROWS"],
  });
}

/** Which walk of accept_commit.wgsl a kernel of acceptance has. */
type Walk =
  | {
    /** Whether rows are a tree's. */
    readonly TREE: boolean;
    /** Whether drawn numbers decide acceptance, not the target's choices. */
    readonly SIMULATED: false;
  }
  | {
    readonly TREE: false;
    readonly SIMULATED: true;
    /** Steps of the draft, each with an acceptance probability of its own. */
    readonly STEPS: number;
  };

/** What accept_commit.wgsl takes, whatever its walk. */
interface AcceptParameters extends Partial<FoldParameters> {
  /** Whether rows are those of packed rounds. */
  readonly PACKED: boolean;
  /** Whether confidences are part of the results. */
  readonly CONFIDENCES: boolean;
  /** Invocations of a workgroup. */
  readonly LANES: number;
  /** Whether the choices are found in partial argmaxes; if so, rows of a sequence, and lanes of each. */
  readonly GREEDY: boolean;
  readonly ROWS?: number;
  readonly WIDTH?: number;
}

/** What differs between kernels of acceptance, whatever their walk. */
interface AcceptVariant {
  /** Rows are those of packed rounds. */
  readonly packed: boolean;
  /** Confidences are part of the results. */
  readonly confidences: boolean;
  /** The lanes that find the choices; absent: they are stored. */
  readonly greedy: GreedyLanes | undefined;
}

function variantOf({ firstRows, confidences = false, rows, greedy }: AcceptShape): AcceptVariant {
  return {
    packed: firstRows !== undefined,
    confidences,
    greedy: greedy && { rows, ...greedyLanes(rows, greedy) },
  };
}

/** Rows of a sequence, lanes of a workgroup, and lanes of a row (`width`); the lanes are powers of two. */
interface GreedyLanes {
  readonly rows: number;
  readonly lanes: number;
  readonly width: number;
}

/** Partial argmaxes that a lane loads at once. */
const EIGHT = 8;

/** The fewest lanes per row that load its partial argmaxes at once, but at most an equal share of all lanes. */
function greedyLanes(rows: number, { count, lanes }: GreedyChoice): Omit<GreedyLanes, "rows"> {
  const shares = powerOfTwo(rows);
  const width = Math.min(Math.floor(lanes / shares), powerOfTwo(count / EIGHT));
  return { lanes: shares * width, width };
}

/** The smallest power of two that is not less than `least`. */
function powerOfTwo(least: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(least)));
}

/**
 * A kernel of acceptance, made once.
 *
 * @param rule with which the kernel's name begins.
 */
function acceptKernel(
  rule: string,
  { packed, confidences, greedy }: AcceptVariant,
  walk: Walk,
): Kernel {
  const how = greedy ? `_greedy_${greedy.rows}_${greedy.lanes}x${greedy.width}` : "";
  const name = `${rule}${packed ? "_packed" : ""}${confidences ? "_confidences" : ""}${how}`;
  const { rows: ROWS = 1, lanes: LANES = 1, width: WIDTH = 1 } = greedy ?? {};
  const all = {
    ...walk,
    PACKED: packed,
    CONFIDENCES: confidences,
    GREEDY: greedy !== undefined,
    LANES,
    ...greedy ? { ROWS, WIDTH, ...foldCounts(WIDTH) } : {},
  };
  return kernelOf<Walk & AcceptParameters>("round/accept_commit")(all, { name });
}

const ACCEPT_PROMPT = kernelOf("round/accept_prompt")({}, {
  name: "accept_prompt",
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
  readonly maxRows: number;
}

/** Records the rows that feed draft token `step`: one a sequence. */
export function draftRows(
  buffers: RowSources,
  shape: Omit<VerifyRowsShape, "rows"> & { readonly step: number },
): Dispatch {
  const { batch, step, maxRows } = shape;
  return dispatch(DRAFT_ROWS, {
    buffers: bound(buffers),
    constants: { STEP: step, MAX_ROWS: maxRows },
    workgroups: [batch],
    label: `draft_rows.${step}`,
  });
}

/** Rows of a draft-extend, or the last of each sequence. */
export interface ExtendedRows {
  readonly rows: Operand;
  /** Queries, rotated, [rows, qCols]. */
  readonly q: Operand;
  /** The residual stream, [rows, cols]. */
  readonly x: Operand;
}

/** Records the last rows of `batch` sequences side by side, from those of a draft-extend. */
export function draftEnds(
  { last, all, ends, reduced }: {
    /** Row of each sequence, u32 [batch]. */
    readonly last: Operand;
    readonly all: ExtendedRows;
    readonly ends: ExtendedRows;
    /** Scales of their attention's output, f32 [batch], where attention reduces them. */
    readonly reduced?: Operand | undefined;
  },
  { batch, qCols, cols }: { readonly batch: number; readonly qCols: number; readonly cols: number },
): Dispatch {
  return dispatch(reduced ? RESETTING_ENDS : DRAFT_ENDS, {
    buffers: {
      last,
      ...all,
      end_rows: ends.rows,
      end_q: ends.q,
      end_x: ends.x,
      ...reduced ? { reduced } : {},
    },
    constants: { Q_COLS: qCols, COLS: cols },
    workgroups: [Math.ceil(Math.max(qCols, cols) / 64), batch],
    label: "draft.ends",
    work: { bytes: 8 * batch * (qCols + cols), flops: 0 },
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

function verifyLaunch(sources: RowSources, { batch, rows, maxRows }: VerifyRowsShape) {
  const constants = { ROWS: rows, MAX_ROWS: maxRows };
  return { buffers: bound(sources), constants, workgroups: [batch * rows] as const };
}

/** Buffers by the names of the shaders. */
function bound<Buffers extends { readonly batchSlots: Operand }>(
  { batchSlots, ...others }: Buffers,
): Omit<Buffers, "batchSlots"> & { readonly batch_slots: Operand } {
  return { ...others, batch_slots: batchSlots };
}

/** What acceptance reads and writes, whatever its rule; see accept_commit.wgsl. */
export interface AcceptBuffers {
  readonly batchSlots: Operand;
  readonly rows: Operand;
  /** Not read where acceptance chooses itself. */
  readonly chosen: Operand;
  readonly drafts: Operand;
  readonly slots: Operand;
  readonly extend: Operand;
  readonly last: Operand;
  readonly results: Operand;
}

/** What acceptance walks: chains of `depth` drafts, or trees of that depth. */
interface AcceptShape extends VerifyRowsShape {
  readonly depth: number;
  /** Of packed rounds: see `verifyPacked`. */
  readonly firstRows?: number | undefined;
  /** Whether results have how many drafts were verified, and the draft's confidences. Chains only. */
  readonly confidences?: boolean | undefined;
  /** The target's choices are the largest logits, which acceptance finds itself: not in packed rounds. */
  readonly greedy?: GreedyChoice | undefined;
}

/** The partial argmaxes of rows of logits, by which acceptance chooses at temperature 0. */
export interface GreedyChoice {
  /** Partial argmaxes, u32 [rows, count, 2]; see partial_argmax.wgsl. */
  readonly partials: Operand;
  /** Of a row. */
  readonly count: number;
  /** Most invocations of a workgroup, a power of two not below the rows of a sequence. */
  readonly lanes: number;
}

/** Records acceptance of chains or trees by the rule of a walk, see accept_commit.wgsl. */
function acceptBy(
  rule: string,
  walk: Walk,
  buffers: AcceptBuffers,
  shape: AcceptShape & { readonly constants?: Readonly<Record<string, number>> },
): Dispatch {
  const { batch, rows, depth, maxRows, firstRows, greedy, constants } = shape;
  const { chosen, ...others } = buffers;
  const choices = greedy ? { partials: greedy.partials } : { chosen };
  return dispatch(acceptKernel(rule, variantOf(shape), walk), {
    buffers: { ...bound(others), ...choices },
    constants: {
      ROWS: rows,
      DEPTH: depth,
      MAX_ROWS: maxRows,
      ...firstRows === undefined ? {} : { FIRST_ROWS: firstRows },
      ...greedy ? { PARTIALS: greedy.count } : {},
      ...constants,
    },
    workgroups: [batch],
  });
}

/** Records acceptance of each sequence's chain: drafts are kept while the target chose the same. */
export function accept(buffers: AcceptBuffers, shape: AcceptShape): Dispatch {
  return acceptBy("accept", { TREE: false, SIMULATED: false }, buffers, shape);
}

/**
 * Records acceptance of each sequence's tree: from its root on to the child that the target chose.
 *
 * @param shape.kept word of `last` from which the verify row of each extend row goes,
 * u32 [batch, depth + 1], 0xffffffff for those that are padding.
 */
export function acceptTree(
  buffers: AcceptBuffers,
  { kept, ...shape }: AcceptShape & { readonly kept: number },
): Dispatch {
  const walk = { TREE: true, SIMULATED: false } as const;
  return acceptBy("accept_tree", walk, buffers, { ...shape, constants: { KEPT: kept } });
}

/**
 * Records `accept` with drawn counts, for timing models whose drafts mean nothing. Bench only.
 *
 * @param shape.acceptance probability that draft j is accepted when those before it were; the last
 * one holds for all further drafts.
 */
export function acceptSimulated(
  buffers: AcceptBuffers,
  { acceptance, ...shape }: AcceptShape & { readonly acceptance: readonly number[] },
): Dispatch {
  const steps = Math.max(1, shape.depth);
  const p = (step: number) => acceptance[step] ?? acceptance.at(-1) ?? 0;
  const drawn = Array.from({ length: steps }, (_, j) => [`P${j}`, p(j)] as const);
  const walk = { TREE: false, SIMULATED: true, STEPS: steps } as const;
  const constants = Object.fromEntries(drawn);
  return acceptBy(`accept_simulated_${steps}`, walk, buffers, { ...shape, constants });
}

/** Records the end of `batch` prompts. */
export function acceptPrompt(
  buffers: {
    readonly batchSlots: Operand;
    readonly last: Operand;
    readonly chosen: Operand;
    readonly slots: Operand;
    readonly extend: Operand;
    readonly results: Operand;
  },
  batch: number,
): Dispatch {
  return dispatch(ACCEPT_PROMPT, { buffers: bound(buffers), constants: {}, workgroups: [batch] });
}
