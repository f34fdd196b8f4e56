import type { DeviceInfo } from "../gpu/device.ts";
import type { KvDtype } from "../gpu/kv.ts";
import type { EngineEvent, GenerateRequest } from "./schedule/events.ts";
import type { LoadProgress } from "./load/load.ts";
import type { EngineText, PromptInput } from "./load/text.ts";
import type { OpenOptions } from "./open.ts";
import type { WeightReport } from "./load/quantize.ts";
import type { UnitsReport } from "./matrices/units_report.ts";
import type { SchedulerCounts } from "./schedule/scheduler.ts";
import type { SpeculationReport } from "./schedule/speculation.ts";
import type { NamedPolicy, SpeculationChoice } from "./schedule/speculation_choice.ts";
import type { AcceptThresholds } from "../speculate/accept_thresholds.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { TunedReport } from "./tune/tuned.ts";

/** What is known of an engine once it is open. Plain data. */
export interface EngineFacts
  extends Pick<EngineText, "hasChatTemplate" | "chatTemplate" | "reasoning" | "generation"> {
  /** The target's checkpoint. */
  readonly name: string;
  readonly draftName: string | undefined;
  /** As in SpeculativeStats. */
  readonly algorithm: string;
  readonly weights: WeightReport;
  /** What `autotune` did; undefined where it was not asked for or there is no hardware. */
  readonly tuned: TunedReport | undefined;
  /** As in Engine. */
  readonly units?: UnitsReport | undefined;
  /** As in Engine. */
  readonly costsLine?: string | undefined;
  /** How keys and values are kept. */
  readonly kvDtype: KvDtype;
  /** As in Engine. */
  readonly acceptThresholds: AcceptThresholds | undefined;
  /** Tokens a sequence may hold, prompt and output. */
  readonly contextLength: number;
  /** Of one request, prompt and output: fewer than the context where `maxKvTokens` leaves less. */
  readonly requestTokens?: number | undefined;
  readonly loadMs: number;
  /** The part of loadMs in which kernels were compiled and ran once. */
  readonly compileMs: number;
  readonly device: DeviceInfo;
  /** Of a request that asks for no number of steps. */
  readonly tier: DraftShape;
  /** The tiers that were built and the bytes they add. */
  readonly tiers: { readonly shapes: readonly DraftShape[]; readonly bytes: number };
}

/** What an engine did until now. Plain data. */
export interface EngineStatus {
  readonly counts: Readonly<SchedulerCounts>;
  readonly speculation: SpeculationReport;
  /** KV pages of 16 tokens; free are also those that only the prefix cache holds. */
  readonly pages: { readonly free: number; readonly total: number };
}

/** Tokens as text. */
export interface DecodedTokens {
  readonly text: string;
  /** Of each token alone; half a character is U+FFFD. */
  readonly pieces: readonly string[];
}

/**
 * An engine in another thread: nothing that it does keeps the caller's thread busy.
 *
 * Disposing it stops the engine and waits until its thread is idle, unless an abort found that the
 * thread does not answer. The thread itself goes on until the process ends or `terminate` is called:
 * with NVIDIA's driver 580 a process that ends while a thread with a device is busy, or is being
 * ended, crashes.
 */
export interface EngineClient extends EngineFacts, AsyncDisposable {
  /**
   * Token ids of a prompt. It is encoded in a thread of its own, one prompt after the other: nothing of
   * it keeps the engine from its rounds.
   *
   * @throws UsageError as Engine.encodePrompt; the signal's reason where it aborts first.
   */
  encodePrompt(input: PromptInput, signal?: AbortSignal): Promise<readonly number[]>;
  /**
   * The text of token ids, special tokens included; in the thread of `encodePrompt`.
   *
   * @throws UsageError for what is no token and for more than a million of them.
   */
  decode(ids: readonly number[], signal?: AbortSignal): Promise<DecodedTokens>;
  /** As Engine.generate. An abort ends it within INTERRUPT_MS, whatever the device is at. */
  generate(request: GenerateRequest): AsyncGenerator<EngineEvent, void, void>;
  /** As of the last request that ended. */
  readonly status: EngineStatus;
  /** As of now: the engine answers between two rounds. */
  readStatus(): Promise<EngineStatus>;
  /**
   * Measures how long the engine's thread is silent: it answers from its message loop, between two
   * rounds. Call it with a deadline (`AbortSignal.timeout`): a thread that hangs never answers.
   *
   * @returns milliseconds from the question to the answer.
   * @throws the signal's reason where it aborts first; the error that ended the engine's thread.
   */
  ping(signal?: AbortSignal): Promise<number>;
  /** Stops the engine and ends its thread, so that a process with nothing else to do ends. */
  terminate(): Promise<void>;
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

export type OpenClient = (options: ClientOptions) => Promise<EngineClient>;
