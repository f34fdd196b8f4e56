import type { GpuChoice } from "../gpu/device.ts";
import type { KvDtype } from "../gpu/kv.ts";
import type { QuantizeChoice } from "../model/config/quantize_choice.ts";
import type { LocalDrafting, SpeculationOptions } from "./drafting.ts";
import type { PromptTarget } from "./device/models.ts";
import type { LoadProgress, ModelChoice } from "./load/load.ts";
import type { SizeFlags } from "./load/sizes.ts";
import type { ResidencyOptions } from "./schedule/residency.ts";
import type { RoundSample } from "./schedule/rounds/round_sample.ts";
import type { RoundsPerSync } from "./schedule/sync_interval.ts";
import type { CostsChoice } from "./tune/costs/engine_costs.ts";
import type { AutotuneChoice } from "./tune/tuned.ts";

/**
 * How an engine is opened; the options are grouped by topic. Everything but the hooks is plain data, which
 * structuredClone copies and which is sent to an engine in another thread.
 */
export interface EngineOptions {
  readonly model?: ModelOptions;
  readonly device?: DeviceOptions;
  readonly limits?: LimitOptions;
  readonly speculation?: SpeculationOptions;
  readonly hooks?: EngineHooks;
}

/** For an engine in this thread: its hooks may be more. */
export interface LocalOptions extends EngineOptions {
  readonly hooks?: LocalHooks;
}

/** Which checkpoints are loaded, and how their weights and texts are read. */
export interface ModelOptions extends ModelChoice, QuantizeChoice {
  /** Default of `PromptInput.allowSpecial`; default false. */
  readonly allowSpecial?: boolean;
  /** Weights made up for the shapes of these config.json files: for timing. */
  readonly random?: { readonly target: string; readonly draft?: string };
}

/** Which device is used, and what is measured on it. Of these options only `precision` can change a text. */
export interface DeviceOptions extends GpuChoice {
  /** Measure at first use which launches suit the adapter; default off. */
  readonly autotune?: AutotuneChoice;
  /**
   * Cost table of rounds: a file, or "off" for none. Absent: the table in the cache; it is measured if there is none
   * and the policy or `sloItlMs` needs costs.
   */
  readonly costs?: CostsChoice;
  /** Time the parts of each round on the device. */
  readonly profile?: boolean;
}

/** What requests may take, and what is prepared for them. */
export interface LimitOptions {
  /** Sequences in flight, 1 to 128; default 1. */
  readonly maxBatch?: number;
  /** Tokens a sequence may hold; default: the model's most, at most 8192. */
  readonly contextLength?: number;
  /**
   * Capacity of the KV cache in tokens, over all sequences; default: what the batch can use, or as many as fit in the
   * GPU's memory (`fitMemory`).
   */
  readonly maxKvTokens?: number;
  /**
   * The share of the GPU's memory that the engine may take in all, above 0 to 1; not used where `maxKvTokens` is given.
   */
  readonly gpuMemoryUtilization?: number;
  /**
   * Rows of a forward of prompts, 1 to 8192, padding included: at most so many prompt tokens are stored between two
   * groups of rounds. Default: what suits the adapter, and fewer while other requests decode.
   */
  readonly maxBatchedRows?: number;
  /**
   * Limit of the inter-token latency, in milliseconds: the longest that a decoding request should wait between two
   * tokens. Forwards of prompts get fewer rows to meet it, by the cost table; missing costs are measured at start.
   * Default: no limit.
   */
  readonly sloItlMs?: number;
  /** How the keys and values of target and draft are kept; default f32. */
  readonly kvDtype?: KvDtype;
  /** Keep the keys and values of earlier requests for later ones with the same prefix; default true. */
  readonly prefixCache?: boolean;
  /** Give the draft's memory to KV pages while nothing is drafted and pages are short; default false. */
  readonly elasticDraft?: boolean;
  /** Rounds that are submitted at once, 1 to MAX_ROUNDS; default "auto". */
  readonly roundsPerSync?: RoundsPerSync;
  /** Requests may have a grammar. Tokens that a grammar forces are used as drafts, and tiers for them are prepared. */
  readonly constrained?: boolean;
  /**
   * Requests may have a prediction, whichever drafter there is. Buffers for rounds with its drafts are allocated; the
   * programs of these rounds are made when first used.
   */
  readonly predictions?: boolean;
  /**
   * Make the programs of prompts of every length before the first request; default false: each is made when a prompt
   * first needs it, which takes some hundredths of a second.
   */
  readonly preparePrompts?: boolean;
  /** The caller's flags for sizes, named where the GPU's memory is too small. */
  readonly sizeFlags?: SizeFlags;
}

/** Functions and signals of the caller: they stay in its thread. */
export interface EngineHooks {
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly onWarning?: (line: string) => void;
  /** Aborting it ends the opening. */
  readonly signal?: AbortSignal;
}

/** Hooks that only an engine in the same thread can call. */
export interface LocalHooks extends EngineHooks, LocalDrafting {
  /** When the draft's memory is given to KV pages and when it is taken back (`elasticDraft`); tests do it often. */
  readonly residency?: Partial<ResidencyOptions>;
  readonly onRound?: (sample: RoundSample) => void;
  /**
   * Returns true while messages wait that only a turn of the event loop can receive; the engine then takes such a turn.
   */
  readonly messageWaits?: () => boolean;
  /** See `PromptTarget`. */
  readonly promptTarget?: PromptTarget;
}
