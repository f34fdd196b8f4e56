/** Rejection sampling. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { lanesOf } from "../sample/choose.ts";
import { keptCounts } from "../sample/kept.ts";
import { slicePartialCount } from "../sample/slice_partials.ts";
import { foldCounts } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";

/** One by one, or as a whole: reject.wgsl, reject_block.wgsl. */
type Rule = "token" | "block";

/** Words of a law, see law.wgsl. */
export const LAW_WORDS = 4;

const ROUND_SLOTS = kernelOf("round/round_slots", {}, {
  name: "round_slots",
  bindings: ["rows", "slots", "round_slots"],
  constants: [],
});

function lawKernel(lanes: number) {
  return kernelOf("round/law", keptCounts(lanes), {
    name: `law_${lanes}`,
    bindings: ["logits", "partials", "rows", "slots", "laws"],
    constants: ["VOCAB", "STRIDE", "PARTIALS", "LANES", "FIRST", "BY_SLOT"],
  });
}

function rejectKernel(rule: Rule, lanes: number): Kernel {
  const name = rule === "token" ? "reject" : "reject_block";
  return kernelOf(`round/${name}`, foldCounts(lanes), {
    name: `${name}_${lanes}`,
    bindings: ["rows", "slots", "drafts", "logits", "draft_logits", "laws", "chosen"],
    constants: [
      ...["ROWS", "VOCAB", "STRIDE", "DRAFT_VOCAB", "DRAFT_STRIDE", "DRAFT_STEP", "DRAFT_LAWS"],
      ...["SLOTS", "LANES", "MOST_ROWS"],
    ],
  }) as Kernel;
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
 * Records the laws that the tokens of `count` rows were chosen by.
 *
 * @param buffers.partials as `choose` left them.
 * @param shape.first place of the first row's law, or of the first slot's where they go by slot.
 */
export function lawsOf(
  buffers: {
    readonly logits: Operand;
    readonly partials: Operand;
    readonly rows: Operand;
    readonly slots: Operand;
    /** f32 [.., LAW_WORDS] */
    readonly laws: Operand;
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
  return dispatch(lawKernel(lanes), {
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
    label: bySlot ? "law.draft" : "law",
  });
}

/** What drafts were drawn from, by steps and slots. */
export interface DraftLaws {
  /** [steps, step]: of each slot `stride`, the first `vocab` of them. */
  readonly logits: Operand;
  readonly vocab: number;
  readonly stride: number;
  readonly step: number;
  readonly slots: number;
  /** Place of the first law. */
  readonly laws: number;
}

/** Records rejection sampling of each sequence's chain: what `chosen` holds becomes its outcome. */
export function reject(
  { drawn, ...buffers }: {
    readonly rows: Operand;
    /** Block verification takes the round's, see `roundSlots`. */
    readonly slots: Operand;
    readonly drafts: Operand;
    /** The target's, that `lawsOf` was made of. */
    readonly logits: Operand;
    readonly drawn: DraftLaws;
    readonly laws: Operand;
    readonly chosen: Operand;
  },
  shape: {
    readonly rule: Rule;
    readonly batch: number;
    readonly rows: number;
    readonly mostRows: number;
    readonly vocab: number;
    readonly stride: number;
    readonly lanes: number;
  },
): Dispatch {
  const { batch, rows, mostRows, vocab, stride } = shape;
  const lanes = lanesOf(vocab, shape.lanes);
  return dispatch(rejectKernel(shape.rule, lanes), {
    buffers: { ...buffers, draft_logits: drawn.logits },
    constants: {
      ROWS: rows,
      MOST_ROWS: mostRows,
      VOCAB: vocab,
      STRIDE: stride,
      LANES: lanes,
      DRAFT_VOCAB: drawn.vocab,
      DRAFT_STRIDE: drawn.stride,
      DRAFT_STEP: drawn.step,
      DRAFT_LAWS: drawn.laws,
      SLOTS: drawn.slots,
    },
    workgroups: [batch],
    label: shape.rule === "token" ? "reject" : "reject.block",
  });
}
