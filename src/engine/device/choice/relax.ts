import { KEPT_MASS_WORDS, relax } from "../../../../kernels/sample/relax.ts";
import type { Gpu } from "../../../gpu/device.ts";
import type { Dispatch, Operand } from "../../../gpu/kernel.ts";
import type { Target } from "../../../model/graph/target.ts";
import type { AcceptThresholds } from "../../../speculate/accept_thresholds.ts";
import { isChain, type RoundShape } from "../../../speculate/round_shape.ts";
import { type EngineSizes, type RoundBuffers, storageBuffer, verifyRowCount } from "../buffers.ts";
import type { SamplingBuffers } from "./choice.ts";

/** Relaxed acceptance and its scratch. */
export interface Relaxed {
  readonly thresholds: AcceptThresholds;
  readonly kept: Operand;
}

export function openRelaxed(
  gpu: Gpu,
  thresholds: AcceptThresholds,
  capacity: EngineSizes,
): Relaxed {
  return { thresholds, kept: allocateKept(gpu, capacity) };
}

/** Allocates the buffer that keeps the target's probabilities of drafts. */
export function allocateKept(gpu: Gpu, capacity: EngineSizes): Operand {
  return storageBuffer(gpu, "kept", verifyRowCount(capacity) * KEPT_MASS_WORDS);
}

/** The dispatches between `chooseRows` and acceptance: none if acceptance is lossless or nothing is drafted. */
export function relaxRows(
  { config, weights, tuning, logits, partials }: Target,
  { rows, slots, drafts, chosen }: RoundBuffers,
  { shape, maxRows, choice, relaxed }: {
    readonly shape: RoundShape;
    /** Rows that a slot may have in any round. */
    readonly maxRows: number;
    readonly choice: SamplingBuffers | undefined;
    readonly relaxed: Relaxed | undefined;
  },
): Dispatch[] {
  if (relaxed === undefined || shape.depth === 0) return [];
  const { kept, thresholds } = relaxed;
  const chosenFrom = choice?.adjusted ?? logits;
  return relax({ logits: chosenFrom, partials, rows, slots, drafts, chosen, kept }, {
    ...shape,
    maxRows,
    thresholds,
    kind: isChain(shape) ? "chain" : "tree",
    vocab: config.vocabSize,
    stride: weights.head.rows,
    lanes: tuning.rowLanes,
  });
}
