/** Reads a draft of any kind. */
import { UsageError } from "../../errors.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { isEagleHead } from "./tensors.ts";
import { isKnown } from "../config/architectures.ts";
import { fieldsOf } from "../config/config.ts";
import { parseDraftConfig } from "../config/draft_config.ts";
import { parseNextnConfig } from "../config/nextn_config.ts";
import { parseStandaloneConfig } from "../config/standalone_config.ts";
import type { AnyDraftConfig, ModelConfig } from "../config/types.ts";

/** Options of the draft besides its files. */
export interface DraftRequest {
  /** Its rope base, instead of what its config.json says. */
  readonly draftRopeTheta?: number | undefined;
  /** What it must be; absent, or another name than a draft model's: what the checkpoint is. */
  readonly algorithm?: string | undefined;
}

/**
 * The draft's config. Without an algorithm, a checkpoint that is no EAGLE head and of an architecture
 * that Eyrie runs is a STANDALONE draft.
 *
 * @throws UsageError when it cannot be used, or not so.
 */
export function parseAnyDraft(
  checkpoint: Checkpoint,
  target: ModelConfig,
  { draftRopeTheta, algorithm }: DraftRequest,
): AnyDraftConfig {
  const head = isEagleHead(checkpoint);
  if (algorithm === "NEXTN") {
    if (!head) return parseNextnConfig(checkpoint, draftRopeTheta);
    throw new UsageError(
      `Cannot use --drafter NEXTN: the draft "${checkpoint.name}" is an EAGLE head; ` +
        "leave the flag out, or the draft: NEXTN drafts with a layer of the model's own files",
    );
  }
  if (algorithm === "STANDALONE") {
    if (!head) return parseStandaloneConfig(checkpoint, target, draftRopeTheta);
    throw new UsageError(
      `Cannot use --drafter STANDALONE: the draft "${checkpoint.name}" is an EAGLE ` +
        "head; leave the flag out, or name a whole model of the target's vocabulary",
    );
  }
  const config = fieldsOf(checkpoint.name, "config.json", checkpoint.json("config.json"));
  return algorithm !== "EAGLE" && algorithm !== "EAGLE3" && !head && isKnown(config)
    ? parseStandaloneConfig(checkpoint, target, draftRopeTheta)
    : parseDraftConfig(checkpoint, target, draftRopeTheta);
}
