/** Rejection sampling of chains, and the distributions that it compares. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { samplingCounts, type SamplingParameters } from "../lib/sampling.ts";
import { lanesOf } from "./choose.ts";
import { slicePartialCount } from "./slice_partials.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";

/** Whether drafts are accepted one by one or as a whole, see reject.wgsl. */
type Rule = "token" | "block";

/** f32 words of a distribution, see distribution.wgsl. */
export const DISTRIBUTION_WORDS = 4;

const ROUND_SLOTS = kernelOf("sample/round_slots")({}, {
  name: "round_slots",
  bindings: ["rows", "slots", "round_slots"],
  constants: [],
});

function distributionKernel(lanes: number) {
  return kernelOf<SamplingParameters>("sample/distribution")(samplingCounts(lanes), {
    name: `distribution_${lanes}`,
    bindings: ["logits", "partials", "rows", "slots", "distributions"],
    constants: ["VOCAB", "STRIDE", "PARTIALS", "LANES", "FIRST", "BY_SLOT"],
  });
}

interface RejectParameters extends FoldParameters {
  /** Whether drafts are accepted as a whole, and not one by one. */
  readonly BLOCK: boolean;
}

function rejectKernel(rule: Rule, lanes: number): Kernel {
  const name = rule === "token" ? "reject" : "reject_block";
  return kernelOf<RejectParameters>("sample/reject")({
    BLOCK: rule === "block",
    ...foldCounts(lanes),
  }, {
    name: `${name}_${lanes}`,
    bindings: ["rows", "slots", "drafts", "logits", "draft_logits", "distributions", "chosen"],
    constants: [
      "ROWS",
      "VOCAB",
      "STRIDE",
      "DRAFT_VOCAB",
      "DRAFT_STRIDE",
      "DRAFT_STEP",
      "DRAFT_DISTRIBUTIONS",
      "SLOTS",
      "LANES",
      "MAX_ROWS",
    ],
  });
}

/** Records the slots of a round that begins after `rows`, see round_slots.wgsl. */
export function roundSlots(
  { roundSlots, ...buffers }: {
    /** Of the pending tokens, [batch]. */
    readonly rows: Operand;
    readonly slots: Operand;
    readonly roundSlots: Operand;
  },
  batch: number,
): Dispatch {
  return dispatch(ROUND_SLOTS, {
    buffers: { ...buffers, round_slots: roundSlots },
    constants: {},
    workgroups: [batch],
  });
}

/**
 * Records the distributions that the tokens of `count` rows were chosen from.
 *
 * @param buffers.partials as `choose` left them.
 * @param shape.first index of the first row's distribution, or of the first slot's with `bySlot`.
 */
export function distributionsOf(
  buffers: {
    readonly logits: Operand;
    readonly partials: Operand;
    readonly rows: Operand;
    readonly slots: Operand;
    /** f32 [.., DISTRIBUTION_WORDS] */
    readonly distributions: Operand;
  },
  shape: {
    readonly count: number;
    readonly vocab: number;
    readonly stride: number;
    readonly lanes: number;
    readonly first: number;
    readonly bySlot: boolean;
  },
): Dispatch {
  const { count, vocab, stride, first, bySlot } = shape;
  const lanes = lanesOf(vocab, shape.lanes);
  return dispatch(distributionKernel(lanes), {
    buffers,
    constants: {
      VOCAB: vocab,
      STRIDE: stride,
      PARTIALS: slicePartialCount(vocab),
      LANES: lanes,
      FIRST: first,
      BY_SLOT: Number(bySlot),
    },
    workgroups: [count],
    label: bySlot ? "distribution.draft" : "distribution",
  });
}

/** What drafts were drawn from, by steps and slots. */
export interface DraftDistributions {
  /** [steps, step]: each slot has `stride` of them, of which the first `vocab` count. */
  readonly logits: Operand;
  readonly vocab: number;
  readonly stride: number;
  readonly step: number;
  readonly slots: number;
  /** Index of the first distribution. */
  readonly first: number;
}

/** Records rejection sampling of each sequence's chain: what `chosen` holds becomes its outcome. */
export function reject(
  { drawn, ...buffers }: {
    readonly rows: Operand;
    /** Block verification takes the round's, see `roundSlots`. */
    readonly slots: Operand;
    readonly drafts: Operand;
    /** The target's, of which `distributionsOf` was recorded. */
    readonly logits: Operand;
    readonly drawn: DraftDistributions;
    readonly distributions: Operand;
    readonly chosen: Operand;
  },
  shape: {
    readonly rule: Rule;
    readonly batch: number;
    readonly rows: number;
    readonly maxRows: number;
    readonly vocab: number;
    readonly stride: number;
    readonly lanes: number;
  },
): Dispatch {
  const { batch, rows, maxRows, vocab, stride } = shape;
  const lanes = lanesOf(vocab, shape.lanes);
  return dispatch(rejectKernel(shape.rule, lanes), {
    buffers: { ...buffers, draft_logits: drawn.logits },
    constants: {
      ROWS: rows,
      MAX_ROWS: maxRows,
      VOCAB: vocab,
      STRIDE: stride,
      LANES: lanes,
      DRAFT_VOCAB: drawn.vocab,
      DRAFT_STRIDE: drawn.stride,
      DRAFT_STEP: drawn.step,
      DRAFT_DISTRIBUTIONS: drawn.first,
      SLOTS: drawn.slots,
    },
    workgroups: [batch],
    label: shape.rule === "token" ? "reject" : "reject.block",
  });
}
