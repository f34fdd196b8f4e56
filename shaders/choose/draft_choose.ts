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
      bindings: ["peaks", "offsets", "lanes", "drafts", ...next ? ["slots", "rows"] : []],
      constants: ["PEAKS", "STEP", "LANES", "MOST_ROWS"],
    });
  });
}

/**
 * Records the draft's top-1 of each lane, of the peaks of its logits, into draft position `step`, and
 * its row where it goes on.
 */
export function draftChoose(
  { next, ...buffers }: {
    /** (key, token) u32, [batch, count, 2] */
    readonly peaks: Operand;
    readonly offsets: Operand;
    readonly lanes: Operand;
    /** What is drafted for each slot, [slots, draftWords(mostRows)]. */
    readonly drafts: Operand;
    readonly next?: NextLevel | undefined;
  },
  shape: {
    readonly batch: number;
    /** Peaks of each lane. */
    readonly count: number;
    readonly step: number;
    readonly mostRows: number;
    /** A power of two. */
    readonly lanes: number;
    readonly label: string;
  },
): Dispatch {
  const { batch, count, step, mostRows, lanes, label } = shape;
  return dispatch(draftChooseKernel(lanes, next !== undefined), {
    buffers: { ...buffers, ...next },
    constants: { PEAKS: count, STEP: step, LANES: lanes, MOST_ROWS: mostRows },
    workgroups: [batch],
    label,
  });
}
