import { peakWords } from "../../shaders/peaks.ts";
import { UsageError } from "../errors.ts";
import type { Gpu } from "../gpu/device.ts";
import type { Operand } from "../gpu/kernel.ts";
import { tuning } from "../gpu/matrix.ts";
import type { DraftConfig, ModelConfig } from "../model/config.ts";
import type { DecoderContext, LayerKv, Scratch } from "../model/decoder.ts";
import { type Draft, type DraftWeights, featureWidth } from "../model/eagle.ts";
import type { Target, TargetWeights } from "../model/llama.ts";
import { attentionSizes, type AttentionSpec, type LayerSpec } from "../model/layer_spec.ts";
import { ropeTable } from "../model/rope.ts";
import { PAGE } from "../model/rows_layout.ts";
import { vectorBuffer } from "../model/weights.ts";
import {
  type Capacity,
  maxRows,
  maxSteps,
  type RoundBuffers,
  storageBuffer,
  tablePages,
  verifyRowCount,
  whole,
} from "./buffers.ts";

/** The models with everything their plans write to. */
export interface Models {
  readonly target: Target;
  readonly draft: SpeculativeDraft | undefined;
}

/** The draft and the target's hidden rows it is fed. */
export interface SpeculativeDraft extends Draft {
  /** Of the rows in flight, [rows, featureCols]. */
  readonly features: Operand;
  readonly featureCols: number;
  /** Of all cells, [pages, PAGE, featureCols]: only where a tier decodes without the draft. */
  readonly store: Operand | undefined;
}

/** Weights as loaded. */
export interface LoadedWeights {
  readonly target: { readonly config: ModelConfig; readonly weights: TargetWeights };
  readonly draft: { readonly config: DraftConfig; readonly weights: DraftWeights } | undefined;
}

/** Gives the loaded weights their scratch, KV pages and rope tables. */
export function prepareModels(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: Capacity,
  buffers: RoundBuffers,
): Models {
  const { config, weights } = loaded.target;
  const target: Target = {
    ...context(gpu, "target", config, capacity, buffers),
    weights,
    kv: config.layers.map(({ attention }, i) => layerKv(gpu, `kv.${i}`, attention, capacity)),
    final: storageBuffer(gpu, "final", maxRows(capacity) * config.hiddenSize),
    logits: storageBuffer(gpu, "logits", verifyRowCount(capacity) * weights.head.rows),
    peaks: storageBuffer(gpu, "peaks", verifyRowCount(capacity) * peakWords(config.vocabSize)),
  };
  return {
    target,
    draft: loaded.draft && prepareDraft(gpu, loaded.draft, target, capacity, buffers),
  };
}

function prepareDraft(
  gpu: Gpu,
  { config, weights }: NonNullable<LoadedWeights["draft"]>,
  target: Target,
  capacity: Capacity,
  buffers: RoundBuffers,
): Models["draft"] {
  const rows = maxRows(capacity);
  const { hiddenSize } = config.layer;
  const featureCols = featureWidth(config, target.config);
  const catchesUp = capacity.steps.includes(0) && maxSteps(capacity) > 0;
  const floats = (label: string, count: number) => storageBuffer(gpu, `draft.${label}`, count);
  const batch = whole(capacity.batch);
  const eagle3 = config.algorithm === "EAGLE3";
  return {
    ...context(gpu, "draft", config.layer, capacity, buffers),
    draft: config,
    weights,
    kv: layerKv(gpu, "draft.kv", (config.layer.layers[0] as LayerSpec).attention, capacity),
    wide: floats("wide", rows * 2 * hiddenSize),
    ends: floats("ends", batch * hiddenSize),
    carry: floats("carry", capacity.batch * hiddenSize),
    logits: floats("logits", batch * weights.head.rows),
    peaks: floats("peaks", batch * peakWords(config.draftVocabSize)),
    drafts: buffers.drafts,
    features: eagle3 ? floats("features", rows * featureCols) : target.final,
    featureCols,
    store: catchesUp ? floats("store", capacity.pages * PAGE * featureCols) : undefined,
  };
}

function context(
  gpu: Gpu,
  name: string,
  config: ModelConfig,
  capacity: Capacity,
  buffers: RoundBuffers,
): DecoderContext {
  const lengths = {
    positions: tablePages(capacity) * PAGE,
    context: capacity.contextLength,
  };
  const { headDim } = (config.layers[0] as LayerSpec).attention;
  return {
    config,
    tuning: tuning(gpu.info.software, gpu.limits.maxComputeInvocationsPerWorkgroup),
    scratch: scratch(gpu, name, config, maxRows(capacity)),
    ropes: config.ropes.map((rope, i) =>
      vectorBuffer(gpu, `${name}.ropes.${i}`, ropeTable(rope, headDim, lengths))
    ),
    pages: buffers.pages,
    tablePages: tablePages(capacity),
  };
}

function scratch(gpu: Gpu, name: string, config: ModelConfig, rows: number): Scratch {
  const floats = (label: string, cols: number) =>
    storageBuffer(gpu, `${name}.${label}`, rows * cols);
  const { hiddenSize, layers } = config;
  const widest = (width: (layer: LayerSpec) => number) => Math.max(...layers.map(width));
  return {
    x: floats("x", hiddenSize),
    normed: floats("normed", hiddenSize),
    qkv: floats("qkv", widest(({ attention }) => attentionSizes(attention).qkv)),
    q: floats("q", widest(({ attention }) => attentionSizes(attention).q)),
    mixed: floats("mixed", widest(({ attention }) => attentionSizes(attention).mixed)),
    act: floats("act", widest(({ mlp }) => mlp.intermediateSize)),
  };
}

function layerKv(gpu: Gpu, label: string, spec: AttentionSpec, capacity: Capacity): LayerKv {
  const words = capacity.pages * PAGE * spec.numKvHeads * spec.headDim;
  const limit = Math.min(gpu.limits.maxStorageBufferBindingSize, gpu.limits.maxBufferSize);
  if (words * 4 > limit) {
    throw new UsageError(
      `Cannot keep ${capacity.pages * PAGE} tokens of keys and values: a layer's keys take ` +
        `${words * 4} bytes, the adapter binds ${limit}; use a smaller --max-kv-tokens`,
    );
  }
  return {
    keys: storageBuffer(gpu, `${label}.keys`, words),
    values: storageBuffer(gpu, `${label}.values`, words),
  };
}
