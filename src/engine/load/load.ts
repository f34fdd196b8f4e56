import { draftsAlone, type HostAlgorithm, isHostAlgorithm } from "../../draft/algorithms.ts";
import { UsageError } from "../../errors.ts";
import type { Gpu } from "../../gpu/device.ts";
import { openCheckpoint } from "../../model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { parseModelConfig } from "../../model/config/config.ts";
import { type DraftRequest, parseAnyDraft } from "../../model/weights/any_draft.ts";
import { openEmbedded } from "../../model/checkpoint/embedded.ts";
import { checkFit } from "../../model/config/fit.ts";
import type { Algorithm, ModelConfig } from "../../model/config/types.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import { tokenMisfit } from "../../model/checkpoint/same_tokens.ts";
import { readTokenMap, withTokenMap } from "../../model/checkpoint/token_map.ts";
import type { TensorInfo } from "../../model/files/safetensors.ts";
import {
  checkDraft,
  checkTarget,
  draftTensors,
  findTensor,
  refuseHead,
  targetTensors,
  type TensorSpec,
} from "../../model/weights/tensors.ts";
import { withDonor } from "../../model/weights/donor.ts";
import { loader, type WeightSource } from "../../model/weights/loader.ts";
import { checkpointWeights } from "../../model/weights/weights.ts";
import type { LoadedWeights } from "../device/models.ts";
import type { OpenedModels } from "./opened_models.ts";
import {
  type ElasticOption,
  makeWeights,
  type MeasuredWeights,
  measureWeights,
  openWeightArenas,
} from "./make_weights.ts";
import { openQuantizers, type Part } from "./quantize.ts";
import { shareTensors } from "./shared_tensors.ts";
import { type UnitsChoice, withTensorMatrices } from "../matrices/tensor.ts";
import { throwDeviceErrors, yieldToEventLoop } from "../device/event_loop.ts";

/** Bytes that have reached the GPU, or kernels that it has compiled. */
export interface LoadProgress {
  readonly label: string;
  /** What `done` and `total` count; default: bytes. */
  readonly unit?: "kernels";
  readonly done: number;
  readonly total: number;
}

/** Which models to load. */
export interface ModelChoice extends DraftRequest {
  /** A folder; absent = the embedded fledgling. */
  readonly model?: string;
  /** A folder whose tensors are read where the target's lacks them, see `withDonor`. */
  readonly donor?: string;
  /**
   * A folder or "none"; absent = the embedded head where the target is embedded too, the target
   * itself for NEXTN, else none.
   */
  readonly draft?: string;
  /**
   * What the draft must be; NONE, or a drafter on the host that drafts alone = no draft model, any
   * other drafter on the host = any or none. Absent: what the checkpoint is.
   */
  readonly algorithm?: Algorithm | HostAlgorithm | "NONE";
  /** File of the tokens that an EAGLE-1/2 draft scores (FR-Spec), see `readTokenMap`. */
  readonly tokenMap?: string;
}

/** @throws UsageError when a checkpoint cannot be used or draft and target do not fit. */
export function openModels(choice: ModelChoice): OpenedModels {
  using stack = new DisposableStack();
  const target = stack.use(
    choice.model === undefined ? openEmbedded("target") : openOwn(choice.model, choice.donor),
  );
  const draft = openDraft(choice);
  if (draft) stack.use(draft);
  const models = checkModels(target, draft, choice);
  checkVocabulary(models);
  const algorithm = isHostAlgorithm(choice.algorithm) ? undefined : choice.algorithm;
  if (models.draft && algorithm && algorithm !== models.draft.config.algorithm) {
    throw new UsageError(
      `Cannot use --drafter ${algorithm}: the draft ` +
        `"${models.draft.checkpoint.name}" is ${models.draft.config.algorithm}`,
    );
  }
  const { draft: read } = models;
  const shared = read && { ...read, config: shareTensors(read, models.target) };
  stack.move();
  return { ...models, draft: shared };
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
  how: DraftRequest & Pick<ModelChoice, "tokenMap"> = {},
): OpenedModels {
  const { name } = target;
  refuseHead(target);
  const generation = target.json("generation_config.json");
  const config = parseModelConfig(name, target.json("config.json"), generation);
  const warnings = checkTarget(target, config);
  const read = draft && { checkpoint: draft, config: parseAnyDraft(draft, config, how) };
  if (read) {
    checkFit({ name: read.checkpoint.name, config: read.config }, { name, config });
    warnings.push(...checkDraft(read.checkpoint, read.config), ...shortDraft(read, config));
  }
  const { head, ignored } = mapTokens(read, { checkpoint: target, config }, how);
  warnings.push(...ignored);
  return {
    target: { checkpoint: target, config },
    draft: head,
    // NEXTN opens the target's files twice.
    warnings: [...new Set(warnings)],
    [Symbol.dispose]: () => {
      target[Symbol.dispose]();
      draft?.[Symbol.dispose]();
    },
  };
}

/** The draft with its token map, if one is given. EAGLE-3 has its own map (d2t), as in SGLang. */
function mapTokens(
  draft: OpenedModels["draft"],
  target: OpenedModels["target"],
  { tokenMap }: Pick<ModelChoice, "tokenMap">,
): { readonly head: OpenedModels["draft"]; readonly ignored: readonly string[] } {
  if (tokenMap === undefined) return { head: draft, ignored: [] };
  const map = draft?.config;
  if (draft === undefined || map?.algorithm !== "EAGLE") {
    const kind = map?.algorithm ?? "no draft";
    return {
      head: draft,
      ignored: [
        `the token map "${tokenMap}" is not used: it is for EAGLE, and the draft is ${kind}`,
      ],
    };
  }
  const { checkpoint, config } = target;
  const role = config.tied ? "embed" : "head";
  const spec = targetTensors(config).find((each) => each.role === role) as TensorSpec;
  const head = findTensor(checkpoint, spec) as TensorInfo;
  const ids = readTokenMap(tokenMap, config.vocabSize);
  const mapped = withTokenMap({ ...draft, config: map }, { checkpoint, head }, ids);
  return { head: mapped, ignored: [] };
}

/** A warning if a standalone draft has fewer positions than the target: it is of no use beyond them. */
function shortDraft(
  { checkpoint, config: { algorithm, layer } }: NonNullable<OpenedModels["draft"]>,
  { maxPositions }: ModelConfig,
): string[] {
  if (algorithm !== "STANDALONE" || layer.maxPositions >= maxPositions) return [];
  return [
    `the draft "${checkpoint.name}" has ${layer.maxPositions} positions, the target ` +
    `${maxPositions}: past its own it drafts badly`,
  ];
}

/** @throws UsageError where a STANDALONE draft would not read the target's tokens as they are meant. */
function checkVocabulary({ target, draft }: OpenedModels): void {
  const why = draft && tokenMisfit(target, draft);
  if (!draft || why === undefined) return;
  throw new UsageError(
    `Cannot use draft "${draft.checkpoint.name}" with target "${target.checkpoint.name}": ${why}`,
  );
}

/** The checkpoint of a folder, with what it lacks from another. @throws UsageError */
export function openOwn(model: string, donor: string | undefined): Checkpoint {
  if (donor === undefined) return openCheckpoint(model);
  using stack = new DisposableStack();
  const both = withDonor(stack.use(openCheckpoint(model)), stack.use(openCheckpoint(donor)));
  stack.move();
  return both;
}

function openDraft({ model, donor, draft, algorithm }: ModelChoice): Checkpoint | undefined {
  if (draft === "none" || algorithm === "NONE" || draftsAlone(algorithm)) return undefined;
  if (draft !== undefined) return openCheckpoint(draft);
  // The NextN layer is in the target's own files, the embedded model has none.
  if (algorithm === "NEXTN" && model !== undefined) return openOwn(model, donor);
  if (model === undefined && algorithm !== "STANDALONE") {
    return openEmbedded(algorithm === "EAGLE" ? "eagle1" : "eagle3");
  }
  if (algorithm === undefined || isHostAlgorithm(algorithm)) return undefined;
  throw new UsageError(
    `Cannot use --drafter ${algorithm}: no draft is given, add --draft MODEL`,
  );
}

/** Streams the weights to the GPU, quantizing there what is asked for. */
export async function loadWeights(
  gpu: Gpu,
  models: OpenedModels,
  options: QuantizeChoice & AllocateOptions & UnitsChoice & {
    readonly onProgress?: (progress: LoadProgress) => void;
  } = {},
): Promise<LoadedWeights> {
  const { onProgress = () => {} } = options;
  using quantizers = openQuantizers(gpu, options);
  const weights = await loadWith(
    gpu,
    models,
    (checkpoint, part) =>
      checkpointWeights(gpu, checkpoint, {
        onBytes: counter(checkpoint, specsOf(models, part), onProgress),
        ...quantizers.of(part),
      }),
    options,
  );
  return await withTensorMatrices(gpu, weights, options);
}

/** How `loadWith` allocates. */
export interface AllocateOptions extends ElasticOption {
  /** These weights, where they were measured already. */
  readonly measured?: MeasuredWeights | undefined;
}

/**
 * Loads both models, each out of the source that `open` gives for its checkpoint. All their weights
 * are measured first, so that they share a few large buffers.
 */
export async function loadWith(
  gpu: Gpu,
  models: Pick<OpenedModels, "target" | "draft">,
  open: (checkpoint: Checkpoint, part: Part) => WeightSource,
  { elasticDraft, measured }: AllocateOptions = {},
): Promise<LoadedWeights> {
  const { target, draft } = models;
  const sources = {
    target: open(target.checkpoint, "target"),
    draft: draft && open(draft.checkpoint, "draft"),
  };
  const sourceOf = (part: Part) => sources[part] as WeightSource;
  const sizes = measured ?? measureWeights(gpu, models, sourceOf, { elasticDraft });
  const { draftBuffers, ...arenas } = openWeightArenas(gpu, sizes);
  // If the GPU has too little memory, this is reported here, before any weight is read.
  await throwDeviceErrors(gpu);
  const yieldNow = yieldToEventLoop();
  const making = makeWeights(models, (part) => loader(gpu, sourceOf(part), arenas[part]));
  let step = making.next();
  for (; !step.done; step = making.next()) {
    await yieldNow();
    gpu.check();
  }
  await throwDeviceErrors(gpu);
  return draftBuffers ? { ...step.value, draftBuffers } : step.value;
}

function specsOf({ target, draft }: OpenedModels, part: Part): TensorSpec[] {
  if (part === "target") return targetTensors(target.config);
  return draft ? draftTensors(draft.config) : [];
}

/** Counts the bytes that are read of the tensors that a model needs: files may have others. Ids are not counted. */
function counter(
  checkpoint: Checkpoint,
  specs: readonly TensorSpec[],
  onProgress: (progress: LoadProgress) => void,
) {
  const { name } = checkpoint;
  const counted = specs.filter(({ kind }) => kind !== "ids");
  const total = counted.reduce((sum, spec) => sum + (findTensor(checkpoint, spec)?.size ?? 0), 0);
  let done = 0;
  return (bytes: number) => {
    done += bytes;
    onProgress({ label: name, done, total });
  };
}
