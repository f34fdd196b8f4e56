/** How large everything on the device is made: from settings, an adapter's limits and a model's layers. */
import type { Gpu } from "../../gpu/device.ts";
import { KV_BYTES, type KvDtype } from "../../gpu/kv.ts";
import type { ModelConfig } from "../../model/config/types.ts";
import { attentionSizes, hasState } from "../../model/config/layer_config.ts";
import { takesQuantized } from "../../gpu/matrix_unit.ts";
import type { Adapter } from "../../gpu/paper.ts";
import { featureWidth } from "../../model/weights/draft_weights.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import {
  LONG_PREFILL_ROWS,
  PAGE,
  PREFILL_ROWS,
  UNITS_PREFILL_ROWS,
} from "../../model/device_layout.ts";
import { rowBucket } from "../device/buckets.ts";
import { promptStates } from "../device/kept_states.ts";
import { draftsAtTimes, type EngineSizes, reservedCells } from "../device/buffers.ts";
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
  /** What is proposed on the host at most. */
  readonly drafter?: Pick<HostDrafter, "shapes"> | undefined;
  /** Requests may have a grammar. */
  readonly constrained?: boolean | undefined;
  /** Rounds that the host drafts for where it has no drafter for all requests; default none. */
  readonly predicted?: readonly DraftShape[] | undefined;
  /** Sequences in flight; default 1. */
  readonly maxBatch?: number | undefined;
  /** Tokens whose keys and values are kept; default: those of the requests that `kvFor` names, each with a whole context. */
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
  /** Floats of the target's features, where a draft reads them. */
  readonly features?: number;
}

/**
 * States at the ends of prompts and answers that there is room for at most: both of a few conversations. Those of the
 * parts of one prompt come on top (`promptStates`). One of Qwen3.6-27B takes 151 MB.
 */
const MOST_END_STATES = 6;

/** Sizes of the device side; keys and values as many as one binding holds of a layer's and of features. */
export function capacityOf(
  {
    maxBatch: batch = 1,
    maxKvTokens,
    maxBatchedRows,
    kvFor = "batch",
    kvDtype = "f32",
    contextLength,
    ...tiers
  }: SizeSettings,
  gpu: Adapter,
  config: KeptByCell,
): EngineSizes & Required<Pick<EngineSizes, "kvDtype">> {
  const shapes = shapesOf(tiers);
  const treeShapes = tiers.tiers.filter((tier) => !isChain(tier));
  const sized = {
    batch,
    shapes,
    treeShapes,
    prefillRows: maxBatchedRows === undefined
      ? prefillRowsOf(tiers, batch, contextLength, gpu)
      : rowBucket(maxBatchedRows),
    promptRun: gpu.info.software ? SOFTWARE_PROMPT_RUN : PROMPT_RUN,
    contextLength,
    pages: 0,
    kvDtype,
    rejection: tiers.rejection,
    confident: tiers.confident,
    ...tiers.prefixCache !== false &&
        hasState(config)
      ? { keptStates: Math.min(MOST_END_STATES, batch + 2) + promptStates(contextLength) }
      : {},
  };
  const whole = Math.ceil(reservedCells(sized, contextLength) / PAGE);
  const asked = maxKvTokens === undefined
    ? (kvFor === "batch" ? batch : 1) * whole
    : Math.ceil(maxKvTokens / PAGE);
  return { ...sized, pages: Math.max(1, Math.min(asked, kvLimit(gpu, config, sized))) };
}

/** Rows of a forward of prompts: more if matrix units are used for the weights; not on software adapters, where it takes long enough. */
function prefillRowsOf(
  { quantize }: QuantizeChoice,
  batch: number,
  contextLength: number,
  gpu: Adapter,
): number {
  const taken = quantize === undefined || takesQuantized(batch);
  if (gpu.matrixUnit === undefined || !taken || gpu.info.software) return PREFILL_ROWS;
  return contextLength > UNITS_PREFILL_ROWS ? LONG_PREFILL_ROWS : UNITS_PREFILL_ROWS;
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

/** The layers of both models: all keep keys; and the features that the draft reads. */
export function allLayers(
  { target, draft }: PaperModels,
): KeptByCell {
  return {
    layers: [...target.config.layers, ...draft?.config.layer.layers ?? []],
    ...draft && draft.config.algorithm !== "STANDALONE"
      ? { features: featureWidth(draft.config, target.config) }
      : {},
  };
}

/** Chains of tokens that a grammar forces: what is verified costs on software, less on a GPU. */
const FORCED_DRAFTS = [3, 7];

/** Pages of which one binding of the adapter holds the keys of every layer, and the features that are kept. */
function kvLimit(
  { limits }: Pick<Gpu, "limits">,
  { layers, features = 0 }: KeptByCell,
  { kvDtype, shapes }: Pick<EngineSizes, "shapes"> & { readonly kvDtype: KvDtype },
) {
  const bytes = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  const widest = Math.max(...layers.map(({ attention }) => attentionSizes(attention).keys));
  const kept = draftsAtTimes({ shapes }) ? features * 4 : 0;
  return Math.floor(bytes / (PAGE * Math.max(widest * KV_BYTES[kvDtype], kept)));
}
