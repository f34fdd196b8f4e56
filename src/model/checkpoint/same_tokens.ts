import { vocabularyMisfit } from "../../text/vocabulary.ts";
import type { AnyDraftConfig, ModelConfig } from "../config/types.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";

/** Why a STANDALONE draft's tokens are not the target's: see `vocabularyMisfit`. Other drafts use the target's ids. */
export function tokenMisfit(
  target: { readonly checkpoint: Checkpoint; readonly config: ModelConfig },
  draft: { readonly checkpoint: Checkpoint; readonly config: AnyDraftConfig },
): string | undefined {
  if (draft.config.algorithm !== "STANDALONE") return undefined;
  const vocabulary = (
    { checkpoint }: typeof draft | typeof target,
    { vocabSize }: ModelConfig,
  ) => ({
    vocabSize,
    tokenizerJson: checkpoint.json("tokenizer.json"),
  });
  return vocabularyMisfit(vocabulary(target, target.config), vocabulary(draft, draft.config.layer));
}
