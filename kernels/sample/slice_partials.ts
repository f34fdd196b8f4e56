import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { PARTIAL_WORDS, type PartialKind } from "../lib/partial.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";

/** Columns that one workgroup looks through. */
export const SLICE = 2048;

/** Most lanes of a workgroup: more would have fewer than eight columns each. */
export const MAX_LANES = 256;

/** Partial results that each row of stored logits has: one a slice. */
export function slicePartialCount(vocab: number): number {
  return Math.ceil(vocab / SLICE);
}

/** u32 words that the partial results of a row take. */
export function slicePartialWords(vocab: number, kind: PartialKind = "argmax"): number {
  return PARTIAL_WORDS[kind] * slicePartialCount(vocab);
}

interface SlicePartialsParameters extends FoldParameters {
  /** What is kept of a slice: lib/partial_KIND. */
  readonly partial: PartialKind;
}

function partialKernel(kind: PartialKind, lanes: number): Kernel {
  const name = `partial_${kind}_${lanes}`;
  return kernelOf<SlicePartialsParameters>("sample/slice_partials")({
    partial: kind,
    ...foldCounts(lanes),
  }, {
    name,
    bindings: ["logits", "partials"],
    constants: ["VOCAB", "STRIDE", "SLICE", "LANES"],
  });
}

/** Records the partial result of each slice of each row: the first pass of choosing. */
export function slicePartials(
  buffers: {
    /** [rows, stride] */
    readonly logits: Operand;
    /** u32 [rows, slicePartialWords(vocab, kind)] */
    readonly partials: Operand;
  },
  shape: {
    readonly kind: PartialKind;
    readonly rows: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    /** Most lanes of a workgroup, a power of two. */
    readonly lanes: number;
    /** Of what is chosen. */
    readonly label: string;
  },
): Dispatch {
  const { kind, rows, vocab, stride, label } = shape;
  const lanes = Math.min(shape.lanes, MAX_LANES);
  return dispatch(partialKernel(kind, lanes), {
    buffers,
    constants: { VOCAB: vocab, STRIDE: stride, SLICE, LANES: lanes },
    workgroups: [slicePartialCount(vocab), rows],
    label: `${label}.partial_${kind}`,
    work: { bytes: 4 * rows * vocab, flops: rows * vocab },
  });
}
