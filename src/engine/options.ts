import type { GpuChoice } from "../gpu/device.ts";
import type { KvDtype } from "../gpu/kv.ts";
import type { QuantizeChoice } from "../model/config/quantize_choice.ts";
import type { LocalDrafting, SpeculationOptions } from "./drafting.ts";
import type { LoadProgress, ModelChoice } from "./load/load.ts";
import type { SizeFlags } from "./load/sizes.ts";
import type { ResidencyOptions } from "./schedule/residency.ts";
import type { RoundSample } from "./schedule/rounds/round_sample.ts";
import type { RoundsPerSync } from "./schedule/sync_interval.ts";
import type { CostsChoice } from "./tune/costs/engine_costs.ts";
import type { AutotuneChoice } from "./tune/tuned.ts";

/**
 * How an engine is opened, by what the options are about. All but the hooks is plain data, which
 * structuredClone copies: that is what an engine in another thread is sent.
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

/** Which device, and what is measured of it. No text depends on these but by `precision`. */
export interface DeviceOptions extends GpuChoice {
  /** Measure at first use which launches suit the adapter; default off. */
  readonly autotune?: AutotuneChoice;
  /**
   * Cost table of rounds: a file, or "off" for none; absent: the cache's, which is measured where the
   * policy uses costs and there is none.
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
   * Tokens whose keys and values are kept, over all sequences; default: what the batch can use, or as many as fit in
   * the GPU's memory (`fitMemory`).
   */
  readonly maxKvTokens?: number;
  /**
   * The share of the GPU's memory that the engine may take in all, above 0 to 1; not used where `maxKvTokens` is given.
   */
  readonly gpuMemoryUtilization?: number;
  /**
   * Rows of a forward of prompts, 1 to 8192: between rounds so many tokens of prompts are stored, padding included;
   * default: what suits the adapter, fewer while other requests decode.
   */
  readonly maxBatchedRows?: number;
  /**
   * Milliseconds that a request which decodes should wait between two tokens at most: forwards of prompts have fewer
   * rows for it, by the cost table, of which what lacks is measured at start. Default: no limit.
   */
  readonly sloItlMs?: number;
  /** How the keys and values of target and draft are kept; default f32. */
  readonly kvDtype?: KvDtype;
  /** Keep the keys and values of earlier requests for those that begin alike; default true. */
  readonly prefixCache?: boolean;
  /** Give the draft's memory to KV pages while nothing is drafted and pages are short; default false. */
  readonly elasticDraft?: boolean;
  /** When that is. */
  readonly residency?: Partial<ResidencyOptions>;
  /** Rounds that are submitted at once, 1 to MOST_ROUNDS; default "auto". */
  readonly roundsPerSync?: RoundsPerSync;
  /** Requests may have a grammar, whose forced tokens are drafted: a tier for them is prepared. */
  readonly constrained?: boolean;
  /**
   * Requests may have a prediction, whichever drafter there is: room for rounds of its drafts is
   * prepared, their programs are made when first wanted.
   */
  readonly predictions?: boolean;
  /**
   * Make the programs of prompts of every length before the first request; default false: each is made when a
   * prompt first wants it, which takes some hundredths of a second.
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
  readonly onRound?: (sample: RoundSample) => void;
  /** True when messages wait that are received only in a turn of the event loop: the engine takes one then. */
  readonly mail?: () => boolean;
}
