import { type PartialSums, partialWords } from "../../../shaders/attention/attention.ts";
import { tileWords } from "../../../shaders/experts/experts.ts";
import { partialArgmaxWords } from "../../../shaders/choose/partial_argmax.ts";
import type { Routing } from "../../../shaders/experts/route.ts";
import { UsageError } from "../../errors.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import { type Arena, measuringArena, openArena } from "../../gpu/arena.ts";
import { KV_BYTES } from "../../gpu/kv.ts";
import { type Launches, MOST_SPLIT_K, tuning } from "../../gpu/matrix.ts";
import type { DraftConfig, ModelConfig } from "../../model/config/types.ts";
import type {
  DecoderContext,
  LayerKv,
  MixtureScratch,
  Scratch,
} from "../../model/plan/decoder_context.ts";
import { featureWidth } from "../../model/plan/eagle.ts";
import type { Draft, DraftWeights } from "../../model/plan/draft_types.ts";
import type { Target, TargetWeights } from "../../model/plan/target.ts";
import {
  actWidth,
  attentionSizes,
  type AttentionSpec,
  headsOf,
  type LayerSpec,
  ropeWidth,
} from "../../model/config/layer_spec.ts";
import { ropeTable } from "../../model/plan/rope.ts";
import { PAGE } from "../../model/plan/rows_layout.ts";
import { vectorBuffer } from "../../model/weights/weights.ts";
import {
  type Capacity,
  draftsAtTimes,
  keptRowCount,
  maxRows,
  mostRows,
  type RoundBuffers,
  storageBuffer,
  tablePages,
  verifyRowCount,
  whole,
} from "./buffers.ts";
import { choiceScratch, treeScratch } from "./draft_scratch.ts";

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
  /** Those of the extend rows of trees, [rows, featureCols]: only where a tier has trees. */
  readonly keptFeatures: Operand | undefined;
  /** Of all cells, [pages, PAGE, featureCols]: only where a tier decodes without the draft. */
  readonly store: Operand | undefined;
}

/** What target and draft share. */
type Shared = RoundBuffers & {
  readonly partial: PartialSums;
  readonly launches: Launches | undefined;
};

/** Weights as loaded. */
export interface LoadedWeights {
  readonly target: { readonly config: ModelConfig; readonly weights: TargetWeights };
  readonly draft: { readonly config: DraftConfig; readonly weights: DraftWeights } | undefined;
  /** What was measured for their matmuls, see autotune.ts. */
  readonly launches?: Launches;
}

/** Gives the loaded weights their scratch, KV pages and rope tables. */
export function prepareModels(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: Capacity,
  buffers: RoundBuffers,
): Models {
  const { config, weights } = loaded.target;
  const { draft, launches } = loaded;
  const configs = [config, ...draft ? [draft.config.layer] : []];
  const shared = { ...buffers, launches, partial: partialSums(gpu, configs, capacity) };
  const [kv, draftKv] = kvOf(gpu, loaded, capacity);
  const target: Target = {
    ...context(gpu, "target", config, capacity, shared),
    weights,
    kv,
    final: storageBuffer(gpu, "final", maxRows(capacity) * config.hiddenSize),
    logits: storageBuffer(gpu, "logits", verifyRowCount(capacity) * weights.head.rows),
    partials: storageBuffer(
      gpu,
      "partials",
      verifyRowCount(capacity) * partialArgmaxWords(config.vocabSize),
    ),
  };
  return {
    target,
    draft: draft && draftKv &&
      prepareDraft(gpu, draft, target, capacity, { ...shared, kv: draftKv }),
  };
}

function prepareDraft(
  gpu: Gpu,
  { config, weights }: NonNullable<LoadedWeights["draft"]>,
  target: Target,
  capacity: Capacity,
  shared: Shared & { readonly kv: LayerKv },
): Models["draft"] {
  const rows = maxRows(capacity);
  const { hiddenSize } = config.layer;
  const featureCols = featureWidth(config, target.config);
  const kept = keptRowCount(capacity);
  const floats = (label: string, count: number) => storageBuffer(gpu, `draft.${label}`, count);
  const batch = whole(capacity.batch);
  const eagle3 = config.algorithm === "EAGLE3";
  const decoder = context(gpu, "draft", config.layer, capacity, shared);
  return {
    ...decoder,
    draft: config,
    weights,
    kv: shared.kv,
    fcInput: floats("fcInput", rows * 2 * hiddenSize),
    normedFeatures: eagle3 && config.inputNorms !== "none"
      ? {
        out: floats("normedFeatures", rows * featureCols),
        auxHidden: config.auxLayers.map((_, i) =>
          vectorBuffer(
            gpu,
            `draft.auxIndex.${i}`,
            Uint32Array.from({ length: rows }, (_, r) => 3 * r + i),
          )
        ),
      }
      : undefined,
    ends: floats("ends", batch * hiddenSize),
    hidden: floats("hidden", capacity.batch * hiddenSize),
    ...choiceScratch(floats, { config, weights, tuning: decoder.tuning }, batch),
    drafts: shared.drafts,
    mostRows: mostRows(capacity),
    tree: treeScratch(gpu, { config, weights }, capacity),
    features: eagle3 ? floats("features", rows * featureCols) : target.final,
    featureCols,
    keptFeatures: kept > 0 ? floats("keptFeatures", kept * featureCols) : undefined,
    store: draftsAtTimes(capacity)
      ? floats("store", capacity.pages * PAGE * featureCols)
      : undefined,
  };
}

function context(
  gpu: Gpu,
  name: string,
  config: ModelConfig,
  capacity: Capacity,
  shared: Shared,
): DecoderContext {
  const lengths = {
    positions: tablePages(capacity) * PAGE,
    context: capacity.contextLength,
  };
  const width = ropeWidth((config.layers[0] as LayerSpec).attention);
  return {
    config,
    tuning: {
      ...tuning(gpu.info.software, gpu.limits, gpu.info.backend),
      launches: shared.launches,
    },
    scratch: { ...scratch(gpu, name, config, maxRows(capacity)), partial: shared.partial },
    ropes: config.ropes.map((rope, i) =>
      vectorBuffer(gpu, `${name}.ropes.${i}`, ropeTable(rope, width, lengths))
    ),
    pages: shared.pages,
    tablePages: tablePages(capacity),
    kvDtype: capacity.kvDtype ?? "f32",
  };
}

/** Room for the partial sums of either model's attention: they never run at once. */
function partialSums(
  gpu: Gpu,
  configs: readonly ModelConfig[],
  capacity: Capacity,
): PartialSums {
  const { kvDtype = "f32" } = capacity;
  const layout = { tablePages: tablePages(capacity), kvDtype };
  const words = configs.flatMap(({ layers }) => layers).map(({ attention }) =>
    partialWords(headsOf(attention, layout), maxRows(capacity), gpu.info)
  );
  return {
    sums: storageBuffer(gpu, "partial.sums", Math.max(...words.map(({ sums }) => sums))),
    stats: storageBuffer(gpu, "partial.stats", Math.max(...words.map(({ stats }) => stats))),
  };
}

function scratch(
  gpu: Gpu,
  name: string,
  config: ModelConfig,
  rows: number,
): Omit<Scratch, "partial"> {
  const floats = (label: string, cols: number) =>
    storageBuffer(gpu, `${name}.${label}`, rows * cols);
  const { hiddenSize, layers } = config;
  const widest = (width: (layer: LayerSpec) => number) => Math.max(...layers.map(width));
  return {
    x: floats("x", hiddenSize),
    normed: floats("normed", hiddenSize),
    qkv: floats("qkv", widest(({ attention }) => attentionSizes(attention).qkv)),
    q: floats("q", widest(({ attention }) => attentionSizes(attention).q)),
    attentionOutput: floats(
      "attentionOutput",
      widest(({ attention }) => attentionSizes(attention).attentionOutput),
    ),
    act: floats("act", widest(({ mlp }) => actWidth(mlp))),
    sums: floats("sums", MOST_SPLIT_K * hiddenSize),
    mixture: mixtureScratch(gpu, name, config, rows),
  };
}

function mixtureScratch(
  gpu: Gpu,
  name: string,
  { hiddenSize, layers }: ModelConfig,
  rows: number,
): MixtureScratch | undefined {
  const routings = layers.flatMap(({ mlp }) => mlp.kind === "mixture" ? [mlp.routing] : []);
  if (routings.length === 0) return undefined;
  const words = (label: string, count: number) => storageBuffer(gpu, `${name}.${label}`, count);
  const widest = (width: (routing: Routing) => number) => Math.max(...routings.map(width));
  const topK = widest((routing) => routing.topK);
  return {
    // A matrix has an even number of rows.
    logits: words("router", rows * widest(({ numExperts }) => numExperts + 1)),
    experts: words("experts", rows * topK),
    weights: words("weights", rows * topK),
    tiles: words("tiles", widest((routing) => tileWords({ ...routing, rows }))),
    outputs: words("outputs", rows * topK * hiddenSize),
  };
}

/** KV pages of the target's layers and of the draft's, all in a few large buffers. */
function kvOf(
  gpu: Gpu,
  { target, draft }: LoadedWeights,
  capacity: Capacity,
): [target: LayerKv[], draft: LayerKv | undefined] {
  const layers = [
    ...target.config.layers,
    ...draft ? [draft.config.layer.layers[0] as LayerSpec] : [],
  ];
  const make = (arena: Arena) =>
    layers.map(({ attention }, i) => layerKv(arena, `kv.${i}`, attention, capacity));
  const measure = measuringArena();
  make(measure);
  checkBinding(gpu, Math.max(...measure.items), capacity);
  const kv = make(openArena(gpu, "kv", measure.items));
  return [kv.slice(0, target.config.layers.length), draft && kv.at(-1)];
}

function layerKv(arena: Arena, label: string, spec: AttentionSpec, capacity: Capacity): LayerKv {
  const { pages, kvDtype = "f32" } = capacity;
  const sizes = attentionSizes(spec);
  const bytes = pages * PAGE * sizes.keys * KV_BYTES[kvDtype];
  const keys = arena.allocate(`${label}.keys`, bytes);
  return { keys, values: sizes.values === 0 ? keys : arena.allocate(`${label}.values`, bytes) };
}

/** @throws UsageError where a layer's keys are more than a binding takes. */
function checkBinding({ limits }: Gpu, bytes: number, { pages }: Capacity): void {
  const limit = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  if (bytes <= limit) return;
  throw new UsageError(
    `Cannot keep ${pages * PAGE} tokens of keys and values: a layer's keys take ` +
      `${bytes} bytes, the adapter binds ${limit}; use a smaller --max-kv-tokens`,
  );
}
