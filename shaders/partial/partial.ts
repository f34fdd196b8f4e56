import type { Slots } from "../../src/gpu/link.ts";

/**
 * What is kept of a part of the columns of a row of logits: its argmax (key, token), or with it what a
 * softmax needs, (key, token, bits of sum of exp(logit - M), 0). See partial/partial_*.wgsl.
 */
export type PartialKind = "argmax" | "softmax";

/** u32 words of one. */
export const PARTIAL_WORDS: Readonly<Record<PartialKind, number>> = { argmax: 2, softmax: 4 };

/** The slot `partial`. */
export function partialSlot(kind: PartialKind): Slots {
  return { partial: `partial/partial_${kind}` };
}
