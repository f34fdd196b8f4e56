import type { AnyDraftConfig, ModelConfig } from "../../model/config/types.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";

/** Open checkpoints whose headers and configs were checked; no weight is read yet. */
export interface OpenedModels extends Disposable {
  readonly target: { readonly checkpoint: Checkpoint; readonly config: ModelConfig };
  readonly draft: { readonly checkpoint: Checkpoint; readonly config: AnyDraftConfig } | undefined;
  /** Tensors that will not be read. */
  readonly warnings: readonly string[];
}
