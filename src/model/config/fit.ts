import { UsageError } from "../../errors.ts";
import type { AnyDraftConfig, ModelConfig } from "./types.ts";
import { hasState } from "./layer_config.ts";
import { quote } from "../files/fields.ts";

/** A config with the name of its checkpoint, for messages. */
export interface Named<Config> {
  readonly name: string;
  readonly config: Config;
}

/**
 * Why the draft cannot draft for the target; undefined if it can. For a STANDALONE draft the tokens are
 * compared instead of the sizes: see src/text/vocabulary.ts.
 */
export function misfit(draft: AnyDraftConfig, target: ModelConfig): string | undefined {
  if (draft.algorithm === "STANDALONE") {
    return hasState(draft.layer)
      ? "a standalone draft's rejected tokens are undone, which its layers with a state of fixed size do not"
      : undefined;
  }
  if (draft.targetHiddenSize !== target.hiddenSize) {
    const made = `the draft is made for hidden states of ${draft.targetHiddenSize}`;
    return `${made}, the target has ${target.hiddenSize}`;
  }
  if (draft.layer.vocabSize !== target.vocabSize) {
    const sizes = `${draft.layer.vocabSize} tokens, the target's ${target.vocabSize}`;
    return `the draft's vocabulary has ${sizes}`;
  }
  const shared = [...draft.ownEmbedding ? [] : ["embedding"], ...draft.ownHead ? [] : ["lm_head"]];
  if (shared.length > 0 && draft.layer.hiddenSize !== target.hiddenSize) {
    const sizes = `hidden size is ${draft.layer.hiddenSize}, not ${target.hiddenSize}`;
    return `the draft shares the target's ${shared.join(" and ")}, but its ${sizes}`;
  }
  const outside = draft.auxLayers.find((layer) => layer < 0 || layer >= target.layers.length);
  if (outside !== undefined) {
    const layers = `${target.layers.length} layers`;
    return `the draft reads the input of layer ${outside}, the target has ${layers}`;
  }
  return undefined;
}

/** @throws UsageError `Cannot use draft "X" with target "Y": ...` when they do not fit together. */
export function checkFit(draft: Named<AnyDraftConfig>, target: Named<ModelConfig>): void {
  const why = misfit(draft.config, target.config);
  if (why === undefined) return;
  const pair = `draft ${quote(draft.name)} with target ${quote(target.name)}`;
  throw new UsageError(`Cannot use ${pair}: ${why}`);
}
