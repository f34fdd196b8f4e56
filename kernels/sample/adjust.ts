import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";
import { MAX_LANES, SLICE } from "./slice_partials.ts";

/** u32 words that the allowed tokens of a row take: a bit each. */
export function maskWords(vocab: number): number {
  return Math.ceil(vocab / 32);
}

/** What penalties are made of, see sample/adjust.wgsl. */
export interface PenaltyBuffers {
  /** [slots, 4]: repetition, frequency, presence, and a u32 that is 0 where a slot has none. */
  readonly penalties: Operand;
  /** u32 [slots, vocab]: times in the output, and PROMPT where the token is in the prompt. */
  readonly counts: Operand;
  /** f32 [slots, vocab]. */
  readonly bias: Operand;
}

/** In a count: the token is in the prompt. */
export const PROMPT = 0x80000000;

interface AdjustParameters {
  /** Whether tokens that a mask does not allow get no probability. */
  readonly MASKED: boolean;
  /** Whether penalties and a bias change logits. */
  readonly PENALIZED: boolean;
}

function adjustKernel(masked: boolean, penalized: boolean): Kernel {
  const name = `adjust${masked ? "_mask" : ""}${penalized ? "_penalty" : ""}`;
  return kernelOf<AdjustParameters>("sample/adjust")({ MASKED: masked, PENALIZED: penalized }, {
    name,
  });
}

/** Whether a step of a program reads masks. The steps before it may run while the masks are made. */
export function readsMasks({ kernel }: { readonly kernel: string }): boolean {
  return kernel.startsWith("adjust_mask");
}

/** Records what the target chooses from, for `choose`: one of masks and penalties, or both. */
export function adjust(
  { masks, penalties, ...buffers }: {
    /** f32 [count, stride] */
    readonly logits: Operand;
    /** f32 [count, stride] */
    readonly adjusted: Operand;
    readonly rows: Operand;
    /** u32 [count, maskWords(vocab)] */
    readonly masks?: Operand | undefined;
    readonly penalties?: PenaltyBuffers | undefined;
  },
  { count, perSlot, vocab, stride, lanes }: {
    readonly count: number;
    /** Rows of a sequence. */
    readonly perSlot: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    /** Most lanes of a workgroup, a power of two. */
    readonly lanes: number;
  },
): Dispatch {
  const [masked, penalized] = [masks !== undefined, penalties !== undefined];
  return dispatch(adjustKernel(masked, penalized), {
    buffers: { ...buffers, ...masks && { masks }, ...penalties },
    constants: {
      VOCAB: vocab,
      STRIDE: stride,
      SLICE,
      LANES: Math.min(lanes, MAX_LANES),
      ...masked ? { MASK_WORDS: maskWords(vocab) } : {},
      ...penalized ? { ROWS: perSlot } : {},
    },
    workgroups: [Math.ceil(vocab / SLICE), count],
    label: "choose.adjust",
    work: { bytes: 8 * count * vocab, flops: count * vocab },
  });
}
