import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { slicePartialCount, slicePartials } from "./slice_partials.ts";
import { kernelOf } from "../shader.ts";
import { gather, GATHERED } from "./gather.ts";
import { samplingCounts, type SamplingParameters } from "../lib/sampling.ts";

/**
 * Enough lanes that none sees over 2048 tokens a pass: Mesa's software driver ends an invocation's
 * loops after 65,535 iterations in total, and there are up to 18 passes.
 */
export function lanesOf(vocab: number, lanes: number): number {
  return Math.max(lanes, 2 ** Math.ceil(Math.log2(vocab / 2048)));
}

interface ChooseParameters extends SamplingParameters {
  /** Whether rows that sample read what `gather` stored of them. */
  readonly GATHERS: boolean;
  /** Most tokens that are stored of a slice. */
  readonly GATHERED: number;
}

function chooseKernel(lanes: number, gathers: boolean): Kernel {
  const name = `choose${gathers ? "_gathered" : ""}_${lanes}`;
  const parameters = { GATHERS: gathers, ...samplingCounts(lanes), GATHERED };
  return kernelOf<ChooseParameters>("sample/choose")(parameters, { name });
}

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
    /** Scratch, [count, gatheredWords(vocab, lanes)] u32; absent where that is 0. */
    readonly gathered?: Operand | undefined;
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
  const { logits, gathered, ...others } = buffers;
  const { count: rows, vocab, stride } = shape;
  const lanes = lanesOf(vocab, shape.lanes);
  return [
    slicePartials({ logits, partials: buffers.partials }, {
      kind: "argmax",
      rows,
      vocab,
      stride,
      lanes,
      label: "choose",
    }),
    ...gathered ? [gather({ ...buffers, gathered }, shape)] : [],
    dispatch(chooseKernel(lanes, gathered !== undefined), {
      buffers: { logits, ...others, ...gathered ? { gathered } : {} },
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
