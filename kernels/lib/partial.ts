/**
 * The partial result of some columns of a row of logits: their argmax (key, token), or with it the sum of a softmax,
 * (key, token, bits of sum of exp(logit - M), 0). See partial_argmax.wgsl and partial_softmax.wgsl.
 */
export type PartialKind = "argmax" | "softmax";

/** u32 words of one. */
export const PARTIAL_WORDS: Readonly<Record<PartialKind, number>> = { argmax: 2, softmax: 4 };
