/** How large everything on the device is made: from settings, an adapter's limits and a model's layers. */
import { type Gpu, largestBinding } from "../../gpu/device.ts";
import { KV_BYTES, type KvDtype } from "../../gpu/kv.ts";
import type { ModelConfig } from "../../model/config/types.ts";
import { attentionSizes, hasState, type LayerConfig } from "../../model/config/layer_config.ts";
import { targetUnits } from "../../gpu/matrix_unit.ts";
import type { Adapter } from "../../gpu/paper.ts";
import { featureWidth } from "../../model/weights/draft_weights.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import {
  LONG_PREFILL_ROWS,
  PAGE,
  PREFILL_ROWS,
  WIDE_PREFILL_ROWS,
} from "../../model/device_layout.ts";
import { rowBucket } from "../device/buckets.ts";
import { promptStates } from "../device/kept_states.ts";
import { draftsAtTimes, type EngineSizes, reservedCells } from "../device/buffers.ts";
import { type RingSizes, windowRings, windowsOf } from "../device/window_rings.ts";
import { PROMPT_RUN, SOFTWARE_PROMPT_RUN } from "../device/prompt_rows.ts";
import type { HostDrafter } from "../../draft/host_drafter.ts";
import type { RejectionRule } from "../../speculate/rejection_rule.ts";
import {
  chain,
  chains,
  distinctTiers,
  type DraftShape,
  isChain,
} from "../../speculate/round_shape.ts";
import type { AllocationChoice, PaperModels } from "./paper.ts";

/** The flags with which a command sets sizes, for advice; absent where it has none. */
export interface SizeFlags {
  readonly maxBatch?: string;
  readonly contextLength?: string;
  readonly maxKvTokens?: string;
}

/** The settings that sizes depend on. */
export interface SizeSettings extends AllocationChoice {
  /** Tokens a sequence may hold. */
  readonly contextLength: number;
  readonly tiers: readonly DraftShape[];
  /** The host drafter, whose shapes rounds must have room for. */
  readonly drafter?: Pick<HostDrafter, "shapes"> | undefined;
  /** Requests may have a grammar. */
  readonly constrained?: boolean | undefined;
  /** Shapes of rounds with drafts from predictions, if there is no host drafter for all requests; default none. */
  readonly predicted?: readonly DraftShape[] | undefined;
  /** Sequences in flight; default 1. */
  readonly maxBatch?: number | undefined;
  /**
   * Tokens whose keys and values are kept; default: those of the requests that `kvFor` names, each with a whole
   * context.
   */
  readonly maxKvTokens?: number | undefined;
  /** "batch", the default: all sequences in flight; "request": one, the fewest that an engine can have. */
  readonly kvFor?: "batch" | "request" | undefined;
  /** Rows of a forward of prompts; default: what suits the adapter. */
  readonly maxBatchedRows?: number | undefined;
  /** Whether prefixes are cached, for which states of fixed size are kept too; default true. */
  readonly prefixCache?: boolean | undefined;
  /** Default f32. */
  readonly kvDtype?: KvDtype | undefined;
  readonly rejection?: RejectionRule | undefined;
  /** See `EngineSizes`. */
  readonly confident?: boolean | undefined;
  /** Default: what `generate` has. */
  readonly sizeFlags?: SizeFlags | undefined;
}

/** What is kept of each token: a layer's keys and values, and what a draft may catch up from. */
export interface KeptByCell extends Pick<ModelConfig, "layers"> {
  /** Layers of a draft, which keep keys of every token; default none. */
  readonly draftLayers?: ModelConfig["layers"];
  /** Floats of the target's features, where a draft reads them. */
  readonly features?: number;
}

/**
 * Most states that are kept at the ends of prefixes: for a few conversations, those of a prompt and of its answer.
 * States within a prompt come on top (`promptStates`); windows have none there. A state of Qwen3.6-27B takes 151 MB,
 * the windows of a prefix of Gemma 4 31B 840 MB in bf16.
 */
const MAX_END_STATES = 6;
/** Window tokens that are kept over all prefixes, if windows are so short that this allows more prefixes. */
const KEPT_TOKENS = 2048;
/** But no more prefixes than this for each sequence in flight. */
const KEPT_OF_EACH = 4;

/** Places for kept states, if layers have states or windows. */
function keptStatesOf(
  config: KeptByCell,
  { batch, contextLength }: { readonly batch: number; readonly contextLength: number },
): Pick<EngineSizes, "keptStates"> {
  const windows = windowsOf(config.layers);
  const ends = Math.min(MAX_END_STATES, batch + 2);
  if (hasState(config)) return { keptStates: ends + promptStates(contextLength) };
  if (windows.length === 0) return {};
  const ofWindows = Math.min(Math.floor(KEPT_TOKENS / Math.max(...windows)), KEPT_OF_EACH * batch);
  return { keptStates: Math.max(ends, ofWindows) };
}

/**
 * Sizes of everything on the device. There are no more KV pages than one binding can hold of a layer's keys, and of
 * features.
 */
export function capacityOf(
  {
    maxBatch: batch = 1,
    maxKvTokens,
    maxBatchedRows,
    kvFor = "batch",
    kvDtype = "f32",
    contextLength,
    ...others
  }: SizeSettings,
  gpu: Adapter,
  config: KeptByCell,
): EngineSizes & Required<Pick<EngineSizes, "kvDtype">> {
  const shapes = shapesOf(others);
  const treeShapes = others.tiers.filter((tier) => !isChain(tier));
  const sized = {
    batch,
    shapes,
    treeShapes,
    prefillRows: maxBatchedRows === undefined
      ? prefillRowsOf(others, { batch, contextLength, gpu, config })
      : rowBucket(maxBatchedRows),
    promptRun: gpu.info.software ? SOFTWARE_PROMPT_RUN : PROMPT_RUN,
    contextLength,
    pages: 0,
    kvDtype,
    rejection: others.rejection,
    confident: others.confident,
    ...others.prefixCache === false ? {} : keptStatesOf(config, { batch, contextLength }),
  };
  const whole = Math.ceil(reservedCells(sized, contextLength) / PAGE);
  const asked = maxKvTokens === undefined
    ? (kvFor === "batch" ? batch : 1) * whole
    : Math.ceil(maxKvTokens / PAGE);
  return { ...sized, pages: Math.max(1, Math.min(asked, kvLimit(gpu, config, sized))) };
}

/**
 * Rows of a forward of prompts: more if matrix units multiply the weights, or for mixtures of experts; not on software
 * adapters, where a forward takes long enough.
 */
function prefillRowsOf(
  { quantize }: QuantizeChoice,
  { batch, contextLength, gpu, config }: {
    readonly batch: number;
    readonly contextLength: number;
    readonly gpu: Adapter;
    readonly config: KeptByCell;
  },
): number {
  if (gpu.info.software) return PREFILL_ROWS;
  const mixture = config.layers.some(({ mlp }) => mlp.kind === "mixture");
  const units = gpu.matrixUnit !== undefined &&
    (quantize === undefined || targetUnits({ batch, mixture }).dense !== "none");
  if (units && batch * contextLength > WIDE_PREFILL_ROWS) return LONG_PREFILL_ROWS;
  return units || mixture ? WIDE_PREFILL_ROWS : PREFILL_ROWS;
}

/** Shapes of the rounds that these settings lead to; without a proposal a round is plain decoding. */
function shapesOf(
  { tiers, drafter, constrained = false, predicted = [] }: Pick<
    SizeSettings,
    "tiers" | "drafter" | "constrained" | "predicted"
  >,
): readonly DraftShape[] {
  const more = [...constrained ? chains(FORCED_DRAFTS) : [], ...predicted];
  if (drafter === undefined) return distinctTiers([...tiers, ...more]);
  return [...distinctTiers([chain(0), ...tiers, ...more]), ...drafter.shapes];
}

/** The layers of both models, and the features that the draft reads. */
export function allLayers(
  { target, draft }: PaperModels,
): KeptByCell {
  return {
    layers: target.config.layers,
    draftLayers: draft?.config.layer.layers ?? [],
    ...draft && draft.config.algorithm !== "STANDALONE"
      ? { features: featureWidth(draft.config, target.config) }
      : {},
  };
}

/**
 * Depths of chains of tokens that a grammar forces. Each verified row costs time on software adapters, less on a GPU.
 */
const FORCED_DRAFTS = [3, 7];

/** Most pages for which one binding of the adapter holds the keys of any layer, and one the kept features. */
function kvLimit(
  { limits }: Pick<Gpu, "limits">,
  { layers, draftLayers = [], features = 0 }: KeptByCell,
  sizes: RingSizes & { readonly kvDtype: KvDtype },
): number {
  const bytes = largestBinding(limits);
  const most = (ofToken: number) => Math.floor(bytes / (PAGE * ofToken));
  const maxPagesOf = ({ attention }: LayerConfig) =>
    most(attentionSizes(attention).keys * KV_BYTES[sizes.kvDtype]);
  // With unlimited pages, every window that can have a ring has one.
  const rings = windowRings(layers, { ...sizes, pages: Infinity });
  const ofLayer = (layer: LayerConfig) => {
    const ring = rings.find(({ window }) => window === layer.attention.window);
    return ring !== undefined && ring.pages <= maxPagesOf(layer) ? Infinity : maxPagesOf(layer);
  };
  return Math.min(
    ...layers.map(ofLayer),
    ...draftLayers.map(maxPagesOf),
    most(draftsAtTimes(sizes) ? features * 4 : 0),
  );
}
