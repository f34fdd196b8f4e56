import { type Dispatch, dispatch, kernel, type Operand } from "../../src/gpu/kernel.ts";
import { slicePartialCount, slicePartials } from "../partial/slice_partials.ts";
import { foldCounts } from "../fragments/workgroup.ts";
import { shader } from "../shader.ts";

/** What `chosen` holds where the logits were not numbers. */
export const NOT_A_TOKEN = 0xffffffff;

/** Loads in flight of a lane; few lanes are a processor's, which gains nothing from them. */
function unrolled(lanes: number): number {
  return lanes < 64 ? 1 : 4;
}

/**
 * Enough lanes that none sees over 2048 tokens a pass: Mesa's software driver ends an invocation's
 * loops after 65,535 iterations in total, and there are up to 18 passes.
 */
export function lanesOf(vocab: number, lanes: number): number {
  return Math.max(lanes, 2 ** Math.ceil(Math.log2(vocab / 2048)));
}

/** Counts of kept.wgsl. */
export function keptCounts(lanes: number): Readonly<Record<string, number>> {
  return { UNROLL: unrolled(lanes), QUADS: 4, ...foldCounts(lanes) };
}

function chooseKernel(lanes: number) {
  return kernel(`choose_${lanes}`, shader("choose/choose", { counts: keptCounts(lanes) }), {
    bindings: ["logits", "partials", "rows", "slots", "chosen"],
    constants: ["VOCAB", "STRIDE", "PARTIALS", "LANES"],
  });
}

const kernels = new Map<number, ReturnType<typeof chooseKernel>>();

/** Records the target's choice at each of `count` rows. */
export function choose(
  buffers: {
    /** [count, stride] */
    readonly logits: Operand;
    /** Scratch, [count, slicePartialWords(vocab)] u32. */
    readonly partials: Operand;
    readonly rows: Operand;
    readonly slots: Operand;
    readonly chosen: Operand;
  },
  shape: {
    readonly count: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    /** A power of two. */
    readonly lanes: number;
  },
): Dispatch[] {
  const { logits } = buffers;
  const { count: rows, vocab, stride } = shape;
  const lanes = lanesOf(vocab, shape.lanes);
  return [
    slicePartials({ logits, partials: buffers.partials }, {
      ...{ kind: "argmax", rows, vocab, stride, lanes, label: "choose" },
    }),
    dispatch(kernels.getOrInsertComputed(lanes, chooseKernel), {
      buffers,
      constants: {
        VOCAB: vocab,
        STRIDE: stride,
        PARTIALS: slicePartialCount(vocab),
        LANES: lanes,
      },
      workgroups: [rows],
      label: "choose",
    }),
  ];
}
