import type { GpuChoice } from "../gpu/device.ts";
import type { KvDtype } from "../gpu/kv.ts";
import type { QuantizeChoice } from "../model/config/quantize_choice.ts";
import type { DraftingChoice } from "./drafting.ts";
import type { LoadProgress, ModelChoice } from "./load/load.ts";
import type { SizeFlags } from "./load/sizes.ts";
import type { ResidencyOptions } from "./schedule/residency.ts";
import type { RoundSample } from "./schedule/rounds/round_sample.ts";
import type { NamedPolicy, SpeculationChoice } from "./schedule/speculation_choice.ts";
import type { RoundsPerSync } from "./schedule/sync_interval.ts";
import type { CostsChoice } from "./tune/costs/engine_costs.ts";
import type { AutotuneChoice } from "./tune/tuned.ts";

export interface OpenOptions extends ModelChoice, QuantizeChoice, DraftingChoice, GpuChoice {
  /** Requests may have a grammar, whose forced tokens are drafted: a tier for them is prepared. */
  readonly constrained?: boolean;
  /**
   * Requests may have a prediction, whichever drafter there is: room for rounds of its drafts is
   * prepared, their programs are made when first wanted.
   */
  readonly predictions?: boolean;
  /** Sequences in flight, 1 to 128; default 1. */
  readonly maxBatch?: number;
  /** Tokens whose keys and values are kept, over all sequences; default: what the batch can use. */
  readonly maxKvTokens?: number;
  /** Give the draft's memory to KV pages while nothing is drafted and pages are short; default false. */
  readonly elasticDraft?: boolean;
  /** When that is. */
  readonly residency?: Partial<ResidencyOptions>;
  /** Keep the keys and values of earlier requests for those that begin alike; default true. */
  readonly prefixCache?: boolean;
  /** As in PromptInput, of prompts that do not say; default false. */
  readonly allowSpecial?: boolean;
  /** How the keys and values of target and draft are kept; default f32. */
  readonly kvDtype?: KvDtype;
  /** Time the parts of each round on the device. */
  readonly profile?: boolean;
  /** Weights made up for the shapes of these config.json files: for timing. */
  readonly random?: { readonly target: string; readonly draft?: string };
  /** Accepted counts are drawn with these probabilities, not verified: for timing. */
  readonly simulateAcceptance?: readonly number[];
  readonly onRound?: (sample: RoundSample) => void;
  /** Rounds that are submitted at once, 1 to MOST_ROUNDS; default "auto". */
  readonly roundsPerSync?: RoundsPerSync;
  /** Tokens a sequence may hold; default: the model's most, at most 8192. */
  readonly contextLength?: number;
  /** The caller's flags for sizes, named where the GPU's memory is too small. */
  readonly sizeFlags?: SizeFlags;
  /** True when messages wait that only a turn of the event loop brings: the engine takes one then. */
  readonly mail?: () => boolean;
  /** Measure at first use which launches suit the adapter; default off. No result depends on it. */
  readonly autotune?: AutotuneChoice;
  /**
   * Cost table of rounds: a file, or "off" for none; absent: the cache's, which is measured where the
   * policy goes by costs and there is none. No text depends on it.
   */
  readonly costs?: CostsChoice;
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly onWarning?: (line: string) => void;
}

/** Options that can be sent to another thread. */
export type SentOptions =
  & Omit<OpenOptions, "speculate" | "drafter" | "onRound" | "onProgress" | "onWarning" | "mail">
  & { readonly speculate?: SpeculationChoice | NamedPolicy };

export interface ClientOptions extends SentOptions {
  /** Aborting it ends the opening. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly onWarning?: (line: string) => void;
}
