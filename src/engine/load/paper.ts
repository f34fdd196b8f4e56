/**
 * How much of the GPU's memory an engine takes: the engine's own code allocates on a GPU that only adds up
 * (gpu/paper.ts), before anything is loaded.
 */
import { UsageError } from "../../errors.ts";
import { measuringArena } from "../../gpu/arena.ts";
import { largestBinding } from "../../gpu/device.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import { tuning } from "../../gpu/tuning.ts";
import { type Adapter, PAPER_ADAPTER, type PaperBuffer, paperGpu } from "../../gpu/paper.ts";
import { readbackBuffer } from "../../gpu/readback.ts";
import type { AnyDraftConfig, ModelConfig } from "../../model/config/types.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { PAGE } from "../../model/device_layout.ts";
import { loadDraft, loadStandalone } from "../../model/weights/draft_weights.ts";
import type { TargetWeights } from "../../model/weights/target_weights.ts";
import { loader, shapesAlone, type WeightShapes } from "../../model/weights/loader.ts";
import { checkpointShapes } from "../../model/weights/checkpoint_shapes.ts";
import { type EngineSizes, maxResultWords, roundBuffers } from "../device/buffers.ts";
import { allocateKept } from "../device/choice/relax.ts";
import { isRecurrent } from "../../model/config/layer_config.ts";
import { allocateKv, allocateModels } from "../device/models.ts";
import { windowRings } from "../device/window_rings.ts";
import { IN_FLIGHT, readbackWords } from "../device/submit/submit.ts";
import { allocateTensorMatrices, type UnitsChoice } from "../matrices/tensor.ts";
import {
  type ElasticOption,
  finish,
  type MeasuredWeights,
  measureWeights,
  openWeightArenas,
} from "./make_weights.ts";

/** Headers and configs: all that sizes depend on. */
export interface PaperModels {
  readonly target: PaperModel<ModelConfig>;
  readonly draft: PaperModel<AnyDraftConfig> | undefined;
}

export interface PaperModel<Config> {
  readonly checkpoint: Pick<Checkpoint, "name" | "tensors">;
  readonly config: Config;
}

/** What decides how much memory an engine takes, besides its sizes. */
export interface AllocationChoice
  extends QuantizeChoice, ElasticOption, Pick<UnitsChoice, "precision"> {
  /** Drafts are accepted by thresholds. */
  readonly relaxed?: boolean | undefined;
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

/** Models whose weights are measured: what is left to choose are an engine's sizes. */
export interface PaperEngine {
  readonly measured: MeasuredWeights;
  /**
   * What an engine of these sizes allocates. Not included: what is released before the engine is open, and what
   * requests need later (masks, penalties, log-probabilities).
   *
   * @throws UsageError where the adapter cannot bind what must be in one binding.
   */
  need(sizes: EngineSizes): MemoryNeed;
}

/**
 * Measures the weights. This takes time where there are many experts, so one `PaperEngine` is kept for all sizes and
 * for loading.
 *
 * @throws UsageError where the adapter cannot bind an expert.
 */
export function openPaper(
  models: PaperModels,
  { elasticDraft, precision, quantize, quantizeDraft, relaxed = false }: AllocationChoice,
  adapter: Adapter,
): PaperEngine {
  const { target, draft } = models;
  const measured = measureWeights(
    adapter,
    { target, draft: draft && { checkpoint: unread(draft.checkpoint), config: draft.config } },
    (part) =>
      part === "draft" && draft
        ? shapesOf(adapter, draft.checkpoint, quantizeDraft ? quantize : undefined)
        : shapesOf(adapter, target.checkpoint, quantize),
    { elasticDraft },
  );
  const gpu = paperGpu(adapter);
  const { draftBuffers } = openWeightArenas(gpu, measured);
  const loaded = draftBuffers ? { ...measured.weights, draftBuffers } : measured.weights;
  return {
    measured,
    need(sizes) {
      const others = paperGpu(adapter);
      const placed = allocateTensorMatrices(others, loaded, { precision, maxBatch: sizes.batch });
      allocateModels(others, placed, sizes, roundBuffers(others, sizes));
      if (relaxed) allocateKept(others, sizes);
      for (let i = 0; i < IN_FLIGHT; i++) {
        readbackBuffer(others, readbackWords({ words: maxResultWords(sizes) }));
      }
      checkBindings(adapter, others.buffers);
      return needOf(gpu.buffers, others.buffers);
    },
  };
}

/**
 * Checks working memory: kernels bind its buffers whole. Those of keys and values, and of weights' scales for matrix
 * units (`tensor.`), are bound in parts.
 *
 * @throws UsageError with the largest buffer, if the adapter cannot bind it.
 */
function checkBindings({ limits }: Adapter, buffers: readonly PaperBuffer[]): void {
  const limit = largestBinding(limits);
  const [largest] = buffers.filter(({ label }) => !isKv(label) && !label.startsWith("tensor."))
    .toSorted((a, b) => b.bytes - a.bytes);
  if (largest === undefined || largest.bytes <= limit) return;
  throw new UsageError(
    `Cannot allocate "${largest.label}": it takes ${largest.bytes} bytes, the adapter binds ${limit}; ` +
      `use a smaller --max-batch, --context-length or --max-batched-rows, or fewer draft steps`,
  );
}

function isKv(label: string): boolean {
  return label.startsWith("kv.");
}

function needOf(ofWeights: readonly PaperBuffer[], others: readonly PaperBuffer[]): MemoryNeed {
  const weights = bytesOf(ofWeights);
  const kv = bytesOf(others.filter(({ label }) => isKv(label)));
  const scratch = bytesOf(others) - kv;
  const buffers = [...ofWeights, ...others];
  return { weights, kv, scratch, total: weights + kv + scratch, buffers };
}

/** Bytes of the tensors of a draft whose target is not known. */
export function draftBytes({ checkpoint, config }: PaperModel<AnyDraftConfig>): number {
  const arena = measuringArena();
  const load = loader(PAPER_ADAPTER, shapesAlone(shapesOf(PAPER_ADAPTER, checkpoint)), arena);
  const files = unread(checkpoint);
  if (config.algorithm === "STANDALONE") finish(loadStandalone(load, files, config));
  else loadDraft(load, files, config, NO_TARGET);
  return sum(arena.items);
}

/** Bytes of the keys and values of one token in all layers, those with a window too. */
export function kvBytesPerToken(config: ModelConfig, kvDtype: KvDtype = "f32"): number {
  const arena = measuringArena();
  const cached = config.layers.filter(({ attention }) => !isRecurrent(attention));
  allocateKv(arena, cached, { pages: 1, kvDtype, batch: 1, shapes: [] });
  return sum(arena.items) / PAGE;
}

/**
 * Bytes of keys and values of an engine of these sizes: of one token in the layers that keep all of a sequence, and of
 * one sequence in those with a window, however long it is.
 */
export function kvBytes(
  { layers }: ModelConfig,
  sizes: EngineSizes,
): { readonly token: number; readonly windows: number } {
  const own = layers.filter(({ attention }) =>
    !isRecurrent(attention) && !(attention.kind === "heads" && attention.sharedKv !== undefined)
  );
  const rings = windowRings(layers, sizes);
  const bytesOf = (window: number | undefined, pages: number) => {
    const arena = measuringArena();
    const some = own.filter(({ attention }) => attention.window === window);
    allocateKv(arena, some, { ...sizes, pages });
    return sum(arena.items);
  };
  const kept = new Set(own.map(({ attention }) => attention.window))
    .difference(new Set(rings.map(({ window }) => window)));
  return {
    token: sum([...kept].map((window) => bytesOf(window, 1))) / PAGE,
    windows: sum(rings.map(({ window, slotPages }) => bytesOf(window, slotPages))),
  };
}

/** Bytes of the states of fixed size that one sequence has, whose rounds have at most `rows` rows. */
export function stateBytes({ layers }: ModelConfig, shapes: EngineSizes["shapes"]): number {
  const arena = measuringArena();
  const recurrent = layers.filter(({ attention }) => isRecurrent(attention));
  allocateKv(arena, recurrent, { pages: 0, batch: 1, shapes });
  return sum(arena.items);
}

/** Stands for the target's embedding and head that a draft borrows: they take no memory of the draft's. */
const NOTHING = {
  format: "bf16",
  rowOrder: "stacked",
  rows: 0,
  cols: 0,
  lanes: 1,
  shards: [],
} as const;
const NO_TARGET: Pick<TargetWeights, "embed" | "head"> = { embed: NOTHING, head: NOTHING };

function shapesOf(
  { info }: Adapter,
  checkpoint: Pick<Checkpoint, "name">,
  quantize?: QuantizeChoice["quantize"],
): WeightShapes {
  return checkpointShapes(checkpoint, { quantize, lanes: tuning(info.software).lanes });
}

/** A checkpoint whose tensors cannot be read: sizes are known without their bytes, so a read is a bug. */
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
