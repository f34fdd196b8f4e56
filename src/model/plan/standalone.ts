/** A causal model as a draft: what it loads beside a target's weights. */
import type { Operand } from "../../gpu/kernel.ts";
import type { StandaloneConfig } from "../config/types.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { Loader } from "../weights/loader.ts";
import { loadTarget, type TargetWeights } from "./target.ts";

export interface StandaloneWeights {
  readonly model: TargetWeights;
  /** Target id minus draft id: zeros, i32 [draft vocab]. */
  readonly offsets: Operand;
}

/** Loads it as a target is. The tensors were checked before (checkDraft). */
export function* loadStandalone(
  load: Loader,
  checkpoint: Pick<Checkpoint, "name" | "tensors">,
  { layer, draftVocabSize }: StandaloneConfig,
): Generator<void, StandaloneWeights> {
  const offsets = load.ids("draft.offsets", draftVocabSize, () => new Int32Array(draftVocabSize));
  return { model: yield* loadTarget(load, checkpoint, layer), offsets };
}
