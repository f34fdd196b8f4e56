import { UsageError } from "../../errors.ts";
import { type Gpu, largestBinding } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import { type Arena, measuringArena, openArena, separateBuffers } from "../../gpu/arena.ts";
import { KV_BYTES } from "../../gpu/kv.ts";
import {
  attentionUnitsOf,
  hasPromptKernels,
  roundMatrices,
  type TensorMatrices,
} from "../../gpu/matrices_on_units.ts";
import type { Launches } from "../../gpu/tuning.ts";
import type { DraftConfig, ModelConfig, StandaloneConfig } from "../../model/config/types.ts";
import type { Draft } from "../../model/graph/draft.ts";
import type { LayerKv } from "../../model/graph/graph.ts";
import type { Target } from "../../model/graph/target.ts";
import { ScratchPool } from "../../gpu/scratch_pool.ts";
import {
  type DraftWeights,
  featureWidth,
  type StandaloneWeights,
} from "../../model/weights/draft_weights.ts";
import type { TargetWeights } from "../../model/weights/target_weights.ts";
import { attentionSizes, isRecurrent, type LayerConfig } from "../../model/config/layer_config.ts";
import { PAGE, ROW_WORDS } from "../../model/device_layout.ts";
import { vectorBuffer } from "../../model/weights/upload.ts";
import {
  draftsAtTimes,
  type EngineSizes,
  keptRowCount,
  maxForwardRows,
  maxRows,
  type RoundBuffers,
  storageBuffer,
  tablePages,
  verifyRowCount,
  wholeTiles,
} from "./buffers.ts";
import {
  causalModel,
  decoderContext,
  type SharedBuffers,
  withUnits,
  writeRopes,
} from "./decoder_buffers.ts";
import { treeScratch } from "./draft_scratch.ts";
import { forwardLayouts } from "./scratch.ts";
import { type KeptStates, keptStates } from "./kept_states.ts";
import { layerState } from "./recurrent_state.ts";
import { windowRings, type WindowTable } from "./window_rings.ts";
import { prepareStandalone, type StandaloneDraft } from "./standalone/model.ts";

/** The models with everything their plans write to. */
export interface Models {
  readonly target: Target;
  /** The target in forwards of prompts; the same object unless these have kernels of their own. */
  readonly promptTarget: Target;
  readonly draft: SpeculativeDraft | undefined;
  /** Instead of `draft`. */
  readonly standalone?: StandaloneDraft | undefined;
  /** Where the draft may leave the GPU. */
  readonly elastic?: ElasticBuffers | undefined;
  /** Where states of prefixes may be kept. */
  readonly kept?: KeptStates | undefined;
  /** Block tables of the target's windows whose keys and values take fewer pages than the whole context's. */
  readonly windows: readonly WindowTable[];
}

/** Buffers by what becomes of them when the draft leaves the GPU. */
export interface ElasticBuffers {
  /**
   * Buffers of `capacity.pages` pages each, which then get more pages: features, and the target's keys and values
   * except those of windows.
   */
  readonly paged: readonly GPUBuffer[];
  /** The draft's weights. */
  readonly weights: readonly GPUBuffer[];
  /** Its keys and values. */
  readonly kv: readonly GPUBuffer[];
}

/** The draft and the target's hidden rows it is fed. */
export interface SpeculativeDraft extends Draft {
  /** Features of the rows in flight, [rows, featureCols]. */
  readonly features: Operand;
  readonly featureCols: number;
  /** Features of the extend rows of trees, [rows, featureCols]: only if a tier has trees. */
  readonly keptFeatures: Operand | undefined;
  /** Features of all cells, [pages, PAGE, featureCols]: only if a tier decodes without the draft. */
  readonly store: Operand | undefined;
}

/** Weights as loaded. */
export interface LoadedWeights {
  readonly target: { readonly config: ModelConfig; readonly weights: TargetWeights };
  readonly draft: { readonly config: DraftConfig; readonly weights: DraftWeights } | undefined;
  /** Instead of `draft`. */
  readonly standalone?: {
    readonly config: StandaloneConfig;
    readonly weights: StandaloneWeights;
  };
  /** What was measured for their matmuls, see autotune.ts. */
  readonly launches?: Launches;
  /** Whether the target's MLPs are joined where they may be, see joined.ts; absent: not measured, and they are. */
  readonly joinsMlp?: boolean | undefined;
  /** Where the device has matrix units: which of the matrices go there, see matrices/tensor.ts. */
  readonly tensor?: TensorMatrices;
  /** Buffers that hold only the draft's weights; present only if the draft may leave the GPU. */
  readonly draftBuffers?: readonly GPUBuffer[];
}

/**
 * Makes the target of prompts' forwards from that of rounds, or returns the same. By default it has matrix units for
 * those matrices that rounds multiply by other kernels.
 */
export type PromptTarget = (target: Target) => Target;

/** Gives the loaded weights their scratch, KV pages and rope tables. */
export function prepareModels(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: EngineSizes,
  buffers: RoundBuffers,
  ofPrompts?: PromptTarget,
): Models {
  const models = allocateModels(gpu, loaded, capacity, buffers, ofPrompts);
  const { target, draft, standalone } = models;
  for (const decoder of [target, draft, standalone?.model]) {
    if (decoder) writeRopes(gpu, decoder, capacity);
  }
  return models;
}

/** The same buffers without contents: rope tables are zeros. */
export function allocateModels(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: EngineSizes,
  buffers: RoundBuffers,
  ofPrompts?: PromptTarget,
): Models {
  const { draft: head, standalone, launches, joinsMlp, tensor, draftBuffers } = loaded;
  const configs = [
    loaded.target.config,
    ...[head, standalone].flatMap((by) => by?.config.layer ?? []),
  ];
  const scratch = new ScratchPool(gpu, "scratch");
  const promptKernels = hasPromptKernels(tensor);
  const { contextLength } = capacity;
  const attention = attentionUnitsOf(gpu, { contextLength, promptKernels }, tensor?.precision);
  const units = { tensor: roundMatrices(tensor), attentionUnits: attention.rounds };
  const shared = { ...buffers, launches, joinsMlp, ...units, scratch };
  const windows = windowRings(loaded.target.config.layers, capacity).map((ring) => ({
    ...ring,
    table: storageBuffer(gpu, `pages.${ring.window}`, capacity.batch * tablePages(capacity)),
  }));
  const [kv = [], draftKv = []] = draftBuffers
    ? elasticKvOf(gpu, configs, capacity, windows)
    : kvOf(gpu, configs, capacity, { windows });
  const target = causalModel(
    gpu,
    "target",
    { ...loaded.target, kv, logitRows: verifyRowCount(capacity) },
    capacity,
    shared,
  );
  const ofUnits = { tensor, attentionUnits: attention.prompts };
  const promptTarget = ofPrompts
    ? ofPrompts(target)
    : promptKernels
    ? withUnits(gpu, target, ofUnits, capacity)
    : target;
  const draft = head &&
    prepareDraft(gpu, head, target, capacity, { ...shared, kv: draftKv[0] as LayerKv });
  const causal = standalone &&
    prepareStandalone(gpu, standalone, capacity, { ...shared, kv: draftKv });
  const models = { target, promptTarget, draft, standalone: causal };
  scratch.allocate(forwardLayouts(models, buffers, capacity));
  const buffersOf = (layers: readonly LayerKv[]) =>
    distinct(
      layers.flatMap(({ keys, values, state, pages }) =>
        state || pages ? [] : [keys.buffer, values.buffer]
      ),
    );
  return {
    ...models,
    windows,
    kept: keptStates(gpu, { layers: loaded.target.config.layers, kv }, capacity, buffers),
    elastic: draftBuffers && {
      paged: [...buffersOf(kv), ...draft?.store ? [draft.store.buffer] : []],
      weights: draftBuffers,
      kv: buffersOf(draftKv),
    },
  };
}

function distinct<T>(all: readonly T[]): T[] {
  return [...new Set(all)];
}

function prepareDraft(
  gpu: Gpu,
  { config, weights }: NonNullable<LoadedWeights["draft"]>,
  target: Target,
  capacity: EngineSizes,
  shared: SharedBuffers & { readonly kv: LayerKv },
): Models["draft"] {
  const rows = maxForwardRows(capacity);
  const { hiddenSize } = config.layer;
  const featureCols = featureWidth(config, target.config);
  const kept = keptRowCount(capacity);
  const floats = (label: string, count: number) => storageBuffer(gpu, `draft.${label}`, count);
  const batch = wholeTiles(capacity.batch);
  const eagle3 = config.algorithm === "EAGLE3";
  const qCols = attentionSizes((config.layer.layers[0] as LayerConfig).attention).q;
  const decoder = decoderContext(gpu, "draft", config.layer, capacity, shared);
  return {
    ...decoder,
    draft: config,
    weights,
    kv: shared.kv,
    auxHidden: eagle3 && config.inputNorms !== "none"
      ? config.auxLayers.map((_, i) =>
        vectorBuffer(
          gpu,
          `draft.auxIndex.${i}`,
          Uint32Array.from({ length: rows }, (_, r) => 3 * r + i),
        )
      )
      : undefined,
    extended: { q: floats("extendedQ", rows * qCols), x: floats("extended", rows * hiddenSize) },
    ends: {
      rows: floats("endRows", batch * ROW_WORDS),
      q: floats("endQ", batch * qCols),
      x: floats("ends", batch * hiddenSize),
    },
    hidden: floats("hidden", capacity.batch * hiddenSize),
    choice: capacity.confident === true ? "softmax" : "argmax",
    drafts: shared.drafts,
    maxRows: maxRows(capacity),
    tree: treeScratch(gpu, { config, weights }, capacity),
    features: eagle3 ? floats("features", rows * featureCols) : target.final,
    featureCols,
    keptFeatures: kept > 0 ? floats("keptFeatures", kept * featureCols) : undefined,
    store: draftsAtTimes(capacity)
      ? floats("store", capacity.pages * PAGE * featureCols)
      : undefined,
  };
}

/**
 * Like `kvOf`, but the target's keys and values of each layer are in buffers of their own, which can be replaced one by
 * one.
 */
function elasticKvOf(
  gpu: Gpu,
  [target, ...draft]: readonly ModelConfig[],
  capacity: EngineSizes,
  windows: readonly WindowTable[],
): LayerKv[][] {
  const { layers } = target as ModelConfig;
  const make = (arena: Arena) => allocateKv(arena, layers, capacity, { windows });
  const measure = measuringArena();
  make(measure);
  checkBinding(gpu, Math.max(...measure.items), capacity);
  return [make(separateBuffers(gpu)), ...kvOf(gpu, draft, capacity, { first: layers.length })];
}

/** KV pages of the layers of each of these models, all in a few large buffers. */
function kvOf(
  gpu: Gpu,
  configs: readonly ModelConfig[],
  capacity: EngineSizes,
  { first = 0, windows = [] }: Placing,
): LayerKv[][] {
  const make = (arena: Arena) => {
    let from = first;
    return configs.map(({ layers }, i) => {
      // A draft may lag behind the target, so its cells cannot be those of the target's rings.
      const placing = { first: from, windows: i === 0 ? windows : [] };
      const made = allocateKv(arena, layers, capacity, placing);
      from += layers.length;
      return made;
    });
  };
  const measure = measuringArena();
  make(measure);
  checkBinding(gpu, Math.max(...measure.items), capacity);
  return make(openArena(gpu, "kv", measure.items));
}

interface Placing {
  /** Number of the first layer in labels; default 0. */
  readonly first?: number;
  /** Block tables of layers with these windows; default: all layers use the block table of the context. */
  readonly windows?: readonly WindowTable[];
}

/** Allocates the keys and values of these layers; a layer with `sharedKv` uses those of another one. */
export function allocateKv(
  arena: Arena,
  layers: readonly Pick<LayerConfig, "attention">[],
  capacity: Pick<EngineSizes, "pages" | "kvDtype" | "batch" | "shapes" | "keptStates">,
  { first = 0, windows = [] }: Placing = {},
): LayerKv[] {
  const { kvDtype = "f32" } = capacity;
  const made: LayerKv[] = [];
  for (const [i, { attention }] of layers.entries()) {
    const shared = attention.kind === "heads" && attention.sharedKv !== undefined
      ? made[attention.sharedKv]
      : undefined;
    made.push(shared ?? ownKv(i, attention));
  }
  return made;

  function ownKv(i: number, attention: LayerConfig["attention"]): LayerKv {
    if (isRecurrent(attention)) {
      const state = layerState(arena, `state.${first + i}`, attention, capacity);
      return { keys: state.ring, values: state.ring, state };
    }
    const sizes = attentionSizes(attention);
    const ring = windows.find(({ window }) => window === attention.window);
    const { pages } = ring ?? capacity;
    const bytes = pages * PAGE * sizes.keys * KV_BYTES[kvDtype];
    const label = `kv.${first + i}`;
    const keys = arena.allocate(`${label}.keys`, bytes);
    const values = sizes.values === 0 ? keys : arena.allocate(`${label}.values`, bytes);
    return { keys, values, ...ring && { pages: ring.table } };
  }
}

/** @throws UsageError where a layer's keys are more than a binding takes. */
function checkBinding({ limits }: Gpu, bytes: number, { pages }: EngineSizes): void {
  const limit = largestBinding(limits);
  if (bytes <= limit) return;
  throw new UsageError(
    `Cannot keep ${pages * PAGE} tokens of keys and values: a layer's keys take ` +
      `${bytes} bytes, the adapter binds ${limit}; use a smaller --max-kv-tokens`,
  );
}
