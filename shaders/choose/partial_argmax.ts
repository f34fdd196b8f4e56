import { type Dispatch, dispatch, kernel, type Operand } from "../../src/gpu/kernel.ts";
import { foldCounts } from "../fragments/workgroup.ts";
import { shader } from "../shader.ts";

/** Columns that one workgroup looks through. */
const SLICE = 2048;

/** Most lanes of a workgroup: more would have fewer than eight columns each. */
const MAX_LANES = 256;

/** Partial argmaxes that each row of logits has: one a slice. */
export function partialArgmaxCount(vocab: number): number {
  return Math.ceil(vocab / SLICE);
}

/** Words that the partial argmaxes of a row take. */
export function partialArgmaxWords(vocab: number): number {
  return 2 * partialArgmaxCount(vocab);
}

function partialArgmaxKernel(lanes: number) {
  const code = shader("choose/partial_argmax", { counts: foldCounts(lanes) });
  return kernel(`partial_argmax_${lanes}`, code, {
    bindings: ["logits", "partials"],
    constants: ["VOCAB", "STRIDE", "SLICE", "LANES"],
  });
}

const kernels = new Map<number, ReturnType<typeof partialArgmaxKernel>>();

/** Records the argmax of each slice of each row: the first pass of choosing. */
export function partialArgmax(
  buffers: {
    /** [rows, stride] */
    readonly logits: Operand;
    /** (key, token) u32, [rows, partialArgmaxCount(vocab), 2] */
    readonly partials: Operand;
  },
  shape: {
    readonly rows: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    /** Most lanes of a workgroup, a power of two. */
    readonly lanes: number;
    readonly label: string;
  },
): Dispatch {
  const { rows, vocab, stride, label } = shape;
  const lanes = Math.min(shape.lanes, MAX_LANES);
  return dispatch(kernels.getOrInsertComputed(lanes, partialArgmaxKernel), {
    buffers,
    constants: { VOCAB: vocab, STRIDE: stride, SLICE, LANES: lanes },
    workgroups: [partialArgmaxCount(vocab), rows],
    label,
    work: { bytes: 4 * rows * vocab, flops: rows * vocab },
  });
}
