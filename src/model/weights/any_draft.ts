/** Reads a draft of any kind. */
import { UsageError } from "../../errors.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { isEagleHead } from "./tensors.ts";
import { isKnown } from "../config/architectures.ts";
import { fieldsOf } from "../files/fields.ts";
import { parseDraftConfig } from "../config/draft_config.ts";
import { parseNextnConfig } from "../config/nextn_config.ts";
import { parseStandaloneConfig } from "../config/standalone_config.ts";
import type { AnyDraftConfig, ModelConfig } from "../config/types.ts";

/** Options of the draft besides its files. */
export interface DraftRequest {
  /** Its rope base, instead of what its config.json says. */
  readonly draftRopeTheta?: number | undefined;
  /** The kind of draft that it must be; absent, or a name that is no draft model's: the checkpoint decides. */
  readonly algorithm?: string | undefined;
}

/**
 * The draft's config. Without an algorithm, a checkpoint is a STANDALONE draft if it is no EAGLE head and
 * has an architecture that Eyrie runs.
 *
 * @throws UsageError if the checkpoint cannot be used, or not with this algorithm.
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
