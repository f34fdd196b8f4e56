/** What an engine allocates of the GPU's memory: its allocations, made on paper before anything is loaded. */
import { type Arena, measuringArena, openArena } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import { tuning } from "../../gpu/matrix.ts";
import { type Adapter, type PaperBuffer, paperGpu } from "../../gpu/paper.ts";
import { readbackBuffer } from "../../gpu/readback.ts";
import type { AnyDraftConfig, ModelConfig } from "../../model/config/types.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { PAGE } from "../../model/plan/device_layout.ts";
import { loadDraft } from "../../model/plan/eagle.ts";
import { loadStandalone } from "../../model/plan/standalone.ts";
import type { TargetWeights } from "../../model/plan/target.ts";
import { type Loader, loader, shapesAlone } from "../../model/weights/loader.ts";
import { checkpointShapes } from "../../model/weights/weights.ts";
import type { AcceptThresholds } from "../../speculate/accept_thresholds.ts";
import { type EngineSizes, mostResultWords, roundBuffers } from "../device/buffers.ts";
import { openRelaxed } from "../device/choice/relax.ts";
import { allocateKv, allocateModels, type LoadedWeights } from "../device/models.ts";
import { readbackWords } from "../device/submit/submit.ts";
import { allocateTensorMatrices, type UnitsChoice } from "../matrices/tensor.ts";
import { type Apart, finish, makeWeights } from "./load.ts";
import type { Part } from "./quantize.ts";

/** Headers and configs: all that sizes depend on. */
export interface PaperModels {
  readonly target: PaperModel<ModelConfig>;
  readonly draft: PaperModel<AnyDraftConfig> | undefined;
}

export interface PaperModel<Config> {
  readonly checkpoint: Pick<Checkpoint, "name" | "tensors">;
  readonly config: Config;
}

/** What decides how much weights take. */
export interface WeightChoice extends QuantizeChoice, Apart, Pick<UnitsChoice, "precision"> {
  readonly acceptThresholds?: AcceptThresholds | undefined;
}

/** Bytes on the GPU. */
export interface MemoryNeed {
  readonly weights: number;
  readonly kv: number;
  /** Working memory: what rounds and prefill write between kernels. */
  readonly scratch: number;
  readonly total: number;
  /** All of it, in the order of allocation. */
  readonly buffers: readonly PaperBuffer[];
}

/**
 * What an engine of these sizes allocates. Not in it: what is released before the engine is open, and what requests
 * want later (masks, penalties, log-probabilities).
 *
 * @throws UsageError where the adapter cannot bind what must be in one binding.
 */
export function memoryNeed(
  models: PaperModels,
  sizes: EngineSizes,
  choice: WeightChoice,
  adapter: Adapter,
): MemoryNeed {
  const gpu = paperGpu(adapter);
  const loaded = weightsOnPaper(gpu, models, choice);
  const weights = bytesOf(gpu.buffers);
  const { precision, acceptThresholds } = choice;
  const placed = allocateTensorMatrices(gpu, loaded, { precision, maxBatch: sizes.batch });
  allocateModels(gpu, placed, sizes, roundBuffers(gpu, sizes));
  if (acceptThresholds) openRelaxed(gpu, acceptThresholds, sizes);
  readbackBuffer(gpu, readbackWords({ words: mostResultWords(sizes) }));
  const kv = bytesOf(gpu.buffers.filter(({ label }) => label.startsWith("kv.")));
  const total = bytesOf(gpu.buffers);
  return { weights, kv, scratch: total - weights - kv, total, buffers: gpu.buffers };
}

/** Allocates the weights as `loadWith` does. */
function weightsOnPaper(gpu: Gpu, models: PaperModels, choice: WeightChoice): LoadedWeights {
  const { elasticDraft = false } = choice;
  const shared = measuringArena();
  const apart = elasticDraft && models.draft !== undefined ? measuringArena() : undefined;
  const arenas = { target: shared, draft: apart ?? shared };
  const weights = makeOnPaper(gpu, models, choice, arenas);
  openArena(gpu, "weights", shared.items);
  return { ...weights, ...apart && { draftBuffers: openArena(gpu, "draft", apart.items).buffers } };
}

/** Bytes of the tensors of each model, without what separates them in a buffer. */
export function weightBytes(
  models: PaperModels,
  choice: QuantizeChoice,
  adapter: Adapter,
): Readonly<Record<Part, number>> {
  const arenas = { target: measuringArena(), draft: measuringArena() };
  makeOnPaper(adapter, models, choice, arenas);
  return { target: sum(arenas.target.items), draft: sum(arenas.draft.items) };
}

/** The same of a draft whose target is not known. */
export function draftBytes(
  { checkpoint, config }: PaperModel<AnyDraftConfig>,
  adapter: Adapter,
): number {
  const arena = measuringArena();
  const load = loaderOf(adapter, checkpoint, undefined, arena);
  const files = unread(checkpoint);
  if (config.algorithm === "STANDALONE") finish(loadStandalone(load, files, config));
  else loadDraft(load, files, config, NO_TARGET);
  return sum(arena.items);
}

/** Bytes of the keys and values of one token in all layers. */
export function kvBytesPerToken(config: ModelConfig, kvDtype: KvDtype = "f32"): number {
  const arena = measuringArena();
  allocateKv(arena, config.layers, { pages: 1, kvDtype });
  return sum(arena.items) / PAGE;
}

/** Stands where a draft borrows the target's embedding and head: they take no memory of the draft's. */
const NOTHING = { format: "bf16", rows: 0, cols: 0, lanes: 1, shards: [] } as const;
const NO_TARGET: Pick<TargetWeights, "embed" | "head"> = { embed: NOTHING, head: NOTHING };

function makeOnPaper(
  gpu: Pick<Gpu, "limits" | "info">,
  { target, draft }: PaperModels,
  { quantize, quantizeDraft }: QuantizeChoice,
  arenas: Readonly<Record<Part, Arena>>,
): LoadedWeights {
  const models = {
    target,
    draft: draft && { checkpoint: unread(draft.checkpoint), config: draft.config },
  };
  return finish(
    makeWeights(
      models,
      (part) =>
        part === "draft" && draft
          ? loaderOf(gpu, draft.checkpoint, quantizeDraft ? quantize : undefined, arenas.draft)
          : loaderOf(gpu, target.checkpoint, quantize, arenas.target),
    ),
  );
}

function loaderOf(
  gpu: Pick<Gpu, "limits" | "info">,
  checkpoint: Pick<Checkpoint, "name">,
  quantize: QuantizeChoice["quantize"],
  arena: Arena,
): Loader {
  const { lanes } = tuning(gpu.info.software);
  return loader(gpu, shapesAlone(checkpointShapes(checkpoint, { quantize, lanes })), arena);
}

/** Sizes are known without a byte of a tensor: one that is read is a bug. */
function unread(
  { name, tensors }: Pick<Checkpoint, "name" | "tensors">,
): Pick<Checkpoint, "name" | "tensors" | "read"> {
  const read: Checkpoint["read"] = (tensor) => {
    throw new Error(`tensor ${tensor.name} of ${name} is read on paper`);
  };
  return { name, tensors, read };
}

function bytesOf(buffers: readonly { readonly bytes: number }[]): number {
  return sum(buffers.map(({ bytes }) => bytes));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
