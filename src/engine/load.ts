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
import { parseNextnConfig } from "../model/nextn_config.ts";
import { openEmbedded } from "../model/embedded.ts";
import { checkFit } from "../model/fit.ts";
import { loadTarget } from "../model/target.ts";
import type { QuantizeChoice } from "../model/quantize_choice.ts";
import { checkDraft, checkTarget } from "../model/tensors.ts";
import { type Loader, loader } from "../model/weights.ts";
import type { LoadedWeights } from "./models.ts";
import { openQuantizers, type Part } from "./quantize.ts";
import { heard, turns } from "./turns.ts";

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
   * A folder or "none"; absent = the embedded head where the target is embedded too, the target
   * itself for NEXTN, else none.
   */
  readonly draft?: string;
  /** The draft's rope base, instead of what its config.json says. */
  readonly draftRopeTheta?: number;
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
  const target = stack.use(
    choice.model === undefined ? openEmbedded("target") : openCheckpoint(choice.model),
  );
  const draft = openDraft(choice);
  if (draft) stack.use(draft);
  const models = checkModels(target, draft, choice);
  const { algorithm } = choice;
  if (models.draft && algorithm && algorithm !== models.draft.config.algorithm) {
    throw new UsageError(
      `Cannot use --speculative-algorithm ${algorithm}: the draft ` +
        `"${models.draft.checkpoint.name}" is ${models.draft.config.algorithm}`,
    );
  }
  stack.move();
  return models;
}

/**
 * Reads the configs and checks them against the tensors and each other. The models own the
 * checkpoints once this returns.
 *
 * @param how the draft is read.
 * @throws UsageError when a checkpoint cannot be used or draft and target do not fit.
 */
export function checkModels(
  target: Checkpoint,
  draft: Checkpoint | undefined,
  how: Pick<ModelChoice, "draftRopeTheta" | "algorithm"> = {},
): OpenedModels {
  const { name } = target;
  const generation = target.json("generation_config.json");
  const config = parseModelConfig(name, target.json("config.json"), generation);
  const warnings = checkTarget(target, config);
  const head = draft && { checkpoint: draft, config: readDraft(draft, config, how) };
  if (head) {
    checkFit({ name: head.checkpoint.name, config: head.config }, { name, config });
    warnings.push(...checkDraft(head.checkpoint, head.config));
  }
  return {
    target: { checkpoint: target, config },
    draft: head,
    warnings,
    [Symbol.dispose]: () => {
      target[Symbol.dispose]();
      draft?.[Symbol.dispose]();
    },
  };
}

function readDraft(
  checkpoint: Checkpoint,
  target: ModelConfig,
  { draftRopeTheta, algorithm }: Pick<ModelChoice, "draftRopeTheta" | "algorithm">,
): DraftConfig {
  return algorithm === "NEXTN"
    ? parseNextnConfig(checkpoint, draftRopeTheta)
    : parseDraftConfig(checkpoint, target, draftRopeTheta);
}

function openDraft({ model, draft, algorithm }: ModelChoice): Checkpoint | undefined {
  if (draft === "none" || algorithm === "NONE") return undefined;
  if (draft !== undefined) return openCheckpoint(draft);
  // The NextN layer lies in the target's own files, the embedded model has none.
  if (algorithm === "NEXTN" && model !== undefined) return openCheckpoint(model);
  if (model === undefined) return openEmbedded(algorithm === "EAGLE" ? "eagle1" : "eagle3");
  if (algorithm === undefined) return undefined;
  throw new UsageError(
    `Cannot use --speculative-algorithm ${algorithm}: no draft is given, add --draft MODEL`,
  );
}

/** Streams the weights to the GPU, quantizing there what is asked for. */
export async function loadWeights(
  gpu: Gpu,
  models: OpenedModels,
  options: QuantizeChoice & { readonly onProgress?: (progress: LoadProgress) => void } = {},
): Promise<LoadedWeights> {
  const { onProgress = () => {} } = options;
  using quantizers = openQuantizers(gpu, options);
  return await loadWith(gpu, models, (checkpoint, part) =>
    loader(gpu, checkpoint, {
      onBytes: counter(checkpoint, onProgress),
      ...quantizers.of(part),
    }));
}

/** Loads both models, each through the loader that `open` makes for its checkpoint. */
export async function loadWith(
  gpu: Gpu,
  { target, draft }: OpenedModels,
  open: (checkpoint: Checkpoint, part: Part) => Loader,
): Promise<LoadedWeights> {
  const { checkpoint, config } = target;
  const turn = turns();
  const weights = await loadTarget(open(checkpoint, "target"), checkpoint, config, async () => {
    await turn();
    // What the GPU has no memory for is heard here, so that reading the rest is spared.
    gpu.check();
  });
  const head = draft && {
    config: draft.config,
    weights: loadDraft(
      gpu,
      open(draft.checkpoint, "draft"),
      draft.checkpoint,
      draft.config,
      weights,
    ),
  };
  await heard(gpu);
  return { target: { config, weights }, draft: head };
}

function counter({ name, tensors }: Checkpoint, onProgress: (progress: LoadProgress) => void) {
  const total = tensors.values().reduce((sum, { size }) => sum + size, 0);
  let bytes = 0;
  return (more: number) => {
    bytes += more;
    onProgress({ label: name, bytes, total });
  };
}
