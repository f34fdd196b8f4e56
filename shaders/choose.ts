import { type Dispatch, dispatch, kernel, type Operand } from "../src/gpu/kernel.ts";
import body from "./choose.wgsl" with { type: "text" };
import draftBody from "./draft_choose.wgsl" with { type: "text" };
import noise from "./noise.wgsl" with { type: "text" };
import rowsCode from "./rows.wgsl" with { type: "text" };

const CHOOSE = kernel("choose", [rowsCode, noise, body].join("\n"), {
  bindings: ["logits", "rows", "slots", "chosen"],
  constants: ["VOCAB", "STRIDE", "LANES"],
});

const DRAFT_CHOOSE = kernel("draft_choose", [rowsCode, draftBody].join("\n"), {
  bindings: ["logits", "offsets", "lanes", "drafts"],
  constants: ["VOCAB", "STRIDE", "STEP", "LANES"],
});

/** What `chosen` holds where the logits were not numbers. */
export const NOT_A_TOKEN = 0xffffffff;

/** Records the target's choice at each of `count` rows; logits is [count, stride]. */
export function choose(
  buffers: {
    readonly logits: Operand;
    readonly rows: Operand;
    readonly slots: Operand;
    readonly chosen: Operand;
  },
  shape: {
    readonly count: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    readonly lanes: number;
  },
): Dispatch {
  return dispatch(CHOOSE, {
    buffers,
    constants: { VOCAB: shape.vocab, STRIDE: shape.stride, LANES: shape.lanes },
    workgroups: [shape.count],
    work: { bytes: 4 * shape.count * shape.vocab, flops: shape.count * shape.vocab },
  });
}

/** Records the draft's top-1 of each lane into draft position `step`; logits is [batch, stride]. */
export function draftChoose(
  buffers: {
    readonly logits: Operand;
    readonly offsets: Operand;
    readonly lanes: Operand;
    readonly drafts: Operand;
  },
  shape: {
    readonly batch: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    readonly step: number;
    readonly lanes: number;
  },
): Dispatch {
  return dispatch(DRAFT_CHOOSE, {
    buffers,
    constants: {
      VOCAB: shape.vocab,
      STRIDE: shape.stride,
      STEP: shape.step,
      LANES: shape.lanes,
    },
    workgroups: [shape.batch],
    label: `draft_choose.${shape.step}`,
    work: { bytes: 4 * shape.batch * shape.vocab, flops: shape.batch * shape.vocab },
  });
}
