import { type Dispatch, dispatch, type Kernel, kernel, type Operand } from "../src/gpu/kernel.ts";
import body from "./draft_choose.wgsl" with { type: "text" };
import nextNone from "./draft_next_none.wgsl" with { type: "text" };
import nextRow from "./draft_next_row.wgsl" with { type: "text" };
import draftRow from "./draft_row.wgsl" with { type: "text" };
import peakCode from "./peak.wgsl" with { type: "text" };
import { peaks as peaksPass, peaksOf } from "./peaks.ts";
import rowsCode from "./rows.wgsl" with { type: "text" };
import { workgroupPeak } from "./workgroup.ts";

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
    const code = [rowsCode, peakCode, workgroupPeak(lanes), body, ...after].join("\n");
    return kernel(name, code, {
      bindings: ["peaks", "offsets", "lanes", "drafts", ...next ? ["slots", "rows"] : []],
      constants: ["PEAKS", "STEP", "LANES"],
    });
  });
}

/** Records the draft's top-1 of each lane into draft position `step`, and its row where it goes on. */
export function draftChoose(
  { logits, next, ...buffers }: {
    /** [batch, stride] */
    readonly logits: Operand;
    /** Scratch, [batch, peakWords(vocab)] u32. */
    readonly peaks: Operand;
    readonly offsets: Operand;
    readonly lanes: Operand;
    readonly drafts: Operand;
    readonly next?: NextLevel | undefined;
  },
  shape: {
    readonly batch: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    readonly step: number;
    /** A power of two. */
    readonly lanes: number;
  },
): Dispatch[] {
  const { batch, vocab, stride, step, lanes } = shape;
  const label = `draft_choose.${step}`;
  return [
    peaksPass(
      { logits, peaks: buffers.peaks },
      { rows: batch, vocab, stride, lanes, label: `${label}.peaks` },
    ),
    dispatch(draftChooseKernel(lanes, next !== undefined), {
      buffers: { ...buffers, ...next },
      constants: { PEAKS: peaksOf(vocab), STEP: step, LANES: lanes },
      workgroups: [batch],
      label,
    }),
  ];
}
