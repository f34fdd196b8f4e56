import { expand } from "../../src/gpu/expand.ts";
import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import body from "./draft_choose.wgsl" with { type: "text" };
import nextNone from "./draft_next_none.wgsl" with { type: "text" };
import nextRow from "./draft_next_row.wgsl" with { type: "text" };
import draftRow from "../fragments/draft_row.wgsl" with { type: "text" };
import draftsCode from "../fragments/drafts.wgsl" with { type: "text" };
import peakCode from "../fragments/peak.wgsl" with { type: "text" };
import rowsCode from "../fragments/rows.wgsl" with { type: "text" };
import { workgroupPeak } from "../fragments/workgroup.ts";

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
    const after = next ? [draftRow, nextRow] : [nextNone];
    const main = expand(body, { FOUR: 4 });
    const code = [rowsCode, draftsCode, peakCode, workgroupPeak(lanes), main, ...after].join("\n");
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
