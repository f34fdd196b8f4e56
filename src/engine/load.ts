import { UsageError } from "../errors.ts";
import type { Gpu } from "../gpu/device.ts";
import { type Checkpoint, openCheckpoint } from "../model/checkpoint.ts";
import {
  type Algorithm,
  type DraftConfig,
  type ModelConfig,
  parseModelConfig,
} from "../model/config.ts";
import { parseDraftConfig } from "../model/draft_config.ts";
import { loadDraft } from "../model/eagle.ts";
import { openEmbedded } from "../model/embedded.ts";
import { checkFit } from "../model/fit.ts";
import { loadTarget } from "../model/llama.ts";
import { checkTensors, draftTensors, targetTensors } from "../model/tensors.ts";
import { loader } from "../model/weights.ts";
import type { LoadedWeights } from "./models.ts";

/** Bytes that reached the GPU. */
export interface LoadProgress {
  readonly label: string;
  readonly bytes: number;
  readonly total: number;
}

/** Which models to load. */
export interface ModelChoice {
  /** A folder; absent = the embedded fledgling. */
  readonly model?: string;
  /**
   * A folder or "none"; absent = the embedded head where the target is embedded too, else none.
   */
  readonly draft?: string;
  /** What the draft must be; NONE = no draft. Absent: what the checkpoint is. */
  readonly algorithm?: Algorithm | "NONE";
}

/** Open checkpoints whose headers and configs were checked; no weight is read yet. */
export interface OpenedModels extends Disposable {
  readonly target: { readonly checkpoint: Checkpoint; readonly config: ModelConfig };
  readonly draft: { readonly checkpoint: Checkpoint; readonly config: DraftConfig } | undefined;
  /** Tensors that will not be read. */
  readonly warnings: readonly string[];
}

/** @throws UsageError when a checkpoint cannot be used or draft and target do not fit. */
export function openModels(choice: ModelChoice): OpenedModels {
  using stack = new DisposableStack();
  const checkpoint = stack.use(
    choice.model === undefined ? openEmbedded("target") : openCheckpoint(choice.model),
  );
  const config = parseModelConfig(
    checkpoint.name,
    checkpoint.json("config.json"),
    checkpoint.json("generation_config.json"),
  );
  const warnings = checkTensors(checkpoint, targetTensors(config));
  const draftCheckpoint = openDraft(choice);
  const draft = draftCheckpoint && {
    checkpoint: stack.use(draftCheckpoint),
    config: parseDraftConfig(draftCheckpoint, config),
  };
  if (draft) {
    const { algorithm } = choice;
    if (algorithm && algorithm !== draft.config.algorithm) {
      throw new UsageError(
        `Cannot use --speculative-algorithm ${algorithm}: the draft ` +
          `"${draft.checkpoint.name}" is ${draft.config.algorithm}`,
      );
    }
    checkFit({ name: draft.checkpoint.name, config: draft.config }, {
      name: checkpoint.name,
      config,
    });
    warnings.push(...checkTensors(draft.checkpoint, draftTensors(draft.config)));
  }
  const owned = stack.move();
  const dispose = () => owned.dispose();
  return { target: { checkpoint, config }, draft, warnings, [Symbol.dispose]: dispose };
}

function openDraft({ model, draft, algorithm }: ModelChoice): Checkpoint | undefined {
  if (draft === "none" || algorithm === "NONE") return undefined;
  if (draft !== undefined) return openCheckpoint(draft);
  if (model === undefined) return openEmbedded(algorithm === "EAGLE" ? "eagle1" : "eagle3");
  if (algorithm === undefined) return undefined;
  throw new UsageError(
    `Cannot use --speculative-algorithm ${algorithm}: no draft is given, add --draft DIR`,
  );
}

/** Streams the weights to the GPU. */
export function loadWeights(
  gpu: Gpu,
  { target, draft }: OpenedModels,
  onProgress: (progress: LoadProgress) => void = () => {},
): LoadedWeights {
  const weights = loadTarget(
    loader(gpu, target.checkpoint, counter(target.checkpoint, onProgress)),
    target.checkpoint,
    target.config,
  );
  const head = draft && {
    config: draft.config,
    weights: loadDraft(
      gpu,
      loader(gpu, draft.checkpoint, counter(draft.checkpoint, onProgress)),
      draft.checkpoint,
      draft.config,
      weights,
    ),
  };
  return { target: { config: target.config, weights }, draft: head };
}

function counter({ name, tensors }: Checkpoint, onProgress: (progress: LoadProgress) => void) {
  const total = tensors.values().reduce((sum, { size }) => sum + size, 0);
  let bytes = 0;
  return (more: number) => {
    bytes += more;
    onProgress({ label: name, bytes, total });
  };
}
