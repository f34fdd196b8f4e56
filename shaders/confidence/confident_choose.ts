import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { NextLevel } from "../choose/draft_choose.ts";
import { foldCounts } from "../fragments/workgroup.ts";
import { shader } from "../shader.ts";

/** Columns that one workgroup looks through. */
const SLICE = 2048;

/** Most lanes of a workgroup: more would have fewer than eight columns each. */
const MAX_LANES = 256;

function slicesOf(vocab: number): number {
  return Math.ceil(vocab / SLICE);
}

/** u32 words that the partial softmaxes of a row take. */
export function partialSoftmaxWords(vocab: number): number {
  return 4 * slicesOf(vocab);
}

const kernels = new Map<string, Kernel>();

function partialKernel(lanes: number): Kernel {
  const name = `partial_softmax_${lanes}`;
  return kernels.getOrInsertComputed(name, () => {
    const counts = foldCounts(lanes);
    return kernel(name, shader("confidence/partial_softmax", { counts }), {
      bindings: ["logits", "partials"],
      constants: ["VOCAB", "STRIDE", "SLICE", "LANES"],
    });
  });
}

function chooseKernel(lanes: number, next: boolean): Kernel {
  const name = `confident_choose_${lanes}${next ? "_next" : ""}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("confidence/confident_choose", {
      slots: { next: next ? "choose/draft_next_row" : "choose/draft_next_none" },
      counts: foldCounts(lanes),
    });
    return kernel(name, code, {
      bindings: ["partials", "offsets", "batch_slots", "drafts", ...next ? ["slots", "rows"] : []],
      constants: ["PARTIALS", "STEP", "LANES", "MOST_ROWS"],
    });
  });
}

/** As `draftChoose`, of logits, and how sure the draft is of its choice: `draft_confidence` of drafts.wgsl. */
export function confidentChoose(
  { logits, partials, offsets, batchSlots, drafts, next }: {
    /** [batch, stride] */
    readonly logits: Operand;
    /** Scratch, [batch, partialSoftmaxWords(vocab)] */
    readonly partials: Operand;
    readonly offsets: Operand;
    /** Slot of each place in the batch, u32 [batch]. */
    readonly batchSlots: Operand;
    /** What is drafted for each slot, [slots, draftWords(mostRows)]. */
    readonly drafts: Operand;
    readonly next?: NextLevel | undefined;
  },
  shape: {
    readonly batch: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    readonly step: number;
    readonly mostRows: number;
    /** Most lanes of a workgroup, a power of two. */
    readonly lanes: number;
    readonly label: string;
  },
): Dispatch[] {
  const { batch, vocab, stride, step, mostRows, label } = shape;
  const lanes = Math.min(shape.lanes, MAX_LANES);
  const slices = slicesOf(vocab);
  return [
    dispatch(partialKernel(lanes), {
      buffers: { logits, partials },
      constants: { VOCAB: vocab, STRIDE: stride, SLICE, LANES: lanes },
      workgroups: [slices, batch],
      label: `${label}.partial_softmax`,
      work: { bytes: 4 * batch * vocab, flops: batch * vocab },
    }),
    dispatch(chooseKernel(lanes, next !== undefined), {
      buffers: { partials, offsets, batch_slots: batchSlots, drafts, ...next },
      constants: { PARTIALS: slices, STEP: step, LANES: lanes, MOST_ROWS: mostRows },
      workgroups: [batch],
      label,
    }),
  ];
}
