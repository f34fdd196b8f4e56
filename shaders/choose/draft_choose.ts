import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { foldCounts } from "../fragments/workgroup.ts";
import { shader } from "../shader.ts";

/** Where the further level's rows go. */
export interface NextLevel {
  readonly slots: Operand;
  /** `Row`s, [batch]. */
  readonly rows: Operand;
}

const kernels = new Map<string, Kernel>();

function draftChooseKernel(lanes: number, next: boolean): Kernel {
  const name = `draft_choose_${lanes}${next ? "_next" : ""}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("choose/draft_choose", {
      slots: { next: next ? "choose/draft_next_row" : "choose/draft_next_none" },
      counts: { FOUR: 4, ...foldCounts(lanes) },
    });
    return kernel(name, code, {
      bindings: ["partials", "offsets", "batch_slots", "drafts", ...next ? ["slots", "rows"] : []],
      constants: ["PARTIALS", "STEP", "LANES", "MOST_ROWS"],
    });
  });
}

/**
 * Records the draft's top-1 of each place in the batch, of the partial argmaxes of its logits, into draft
 * position `step`, and its row where there is a further level.
 */
export function draftChoose(
  { next, batchSlots, ...buffers }: {
    /** (key, token) u32, [batch, count, 2] */
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
    /** Partial argmaxes of each place. */
    readonly count: number;
    readonly step: number;
    readonly mostRows: number;
    /** Invocations of a workgroup, a power of two. */
    readonly lanes: number;
    readonly label: string;
  },
): Dispatch {
  const { batch, count, step, mostRows, lanes, label } = shape;
  return dispatch(draftChooseKernel(lanes, next !== undefined), {
    buffers: { ...buffers, batch_slots: batchSlots, ...next },
    constants: { PARTIALS: count, STEP: step, LANES: lanes, MOST_ROWS: mostRows },
    workgroups: [batch],
    label,
  });
}
