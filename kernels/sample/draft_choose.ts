import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { PartialKind } from "../lib/partial.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";

/** Where the rows of the next draft level are stored. */
export interface NextLevel {
  readonly slots: Operand;
  /** `Row`s, [batch]. */
  readonly rows: Operand;
}

/** Partial results that a lane loads at once. */
const FOUR = 4;

interface DraftChooseParameters extends FoldParameters {
  /** What is kept of a part of the columns: lib/partial_KIND. */
  readonly partial: PartialKind;
  /** Whether a further level follows, whose rows are stored. */
  readonly NEXT: boolean;
}

function draftChooseKernel(kind: PartialKind, lanes: number, next: boolean): Kernel {
  const of = kind === "softmax" ? "confident" : "draft";
  const name = `${of}_choose_${lanes}${next ? "_next" : ""}`;
  const parameters = { partial: kind, NEXT: next, ...foldCounts(lanes) };
  return kernelOf<DraftChooseParameters>("sample/draft_choose")(parameters, { name });
}

/** The fewest lanes, a power of two, that load all partial results at once; each joins its own one after the other. */
function lanesOf(count: number, most: number): number {
  return Math.min(most, 2 ** Math.ceil(Math.log2(Math.max(1, count / FOUR))));
}

/**
 * Records the choice of the draft's top-1 token of each place in the batch, from the partial results of its logits. It
 * stores the token at draft position `step`, and the token's row if a further level follows. Partial softmaxes also
 * give the draft's confidence in the token: `draft_confidence` of drafts.wgsl.
 */
export function draftChoose(
  { next, batchSlots, ...buffers }: {
    /** u32 [batch, count, PARTIAL_WORDS[kind]] */
    readonly partials: Operand;
    readonly offsets: Operand;
    /** Slot of each place in the batch, u32 [batch]. */
    readonly batchSlots: Operand;
    /** What is drafted for each slot, [slots, draftWords(maxRows)]. */
    readonly drafts: Operand;
    readonly next?: NextLevel | undefined;
  },
  shape: {
    readonly kind: PartialKind;
    readonly batch: number;
    /** Partial results of each place. */
    readonly count: number;
    readonly step: number;
    readonly maxRows: number;
    /** Most invocations of a workgroup, a power of two. */
    readonly lanes: number;
    readonly label: string;
  },
): Dispatch {
  const { kind, batch, count, step, maxRows, label } = shape;
  const lanes = lanesOf(count, shape.lanes);
  return dispatch(draftChooseKernel(kind, lanes, next !== undefined), {
    buffers: { ...buffers, batch_slots: batchSlots, ...next },
    constants: { PARTIALS: count, STEP: step, LANES: lanes, MAX_ROWS: maxRows },
    workgroups: [batch],
    label,
  });
}
