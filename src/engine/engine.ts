import type { DeviceInfo } from "../gpu/device.ts";
import type { KvDtype } from "../gpu/kv.ts";
import type { EventStream } from "./schedule/event_stream.ts";
import type { GenerateRequest } from "./schedule/events.ts";
import type { EngineText, PromptInput, TokenPiece } from "./load/text.ts";
import type { EngineOptions } from "./options.ts";
import type { WeightReport } from "./load/quantize.ts";
import type { UnitsReport } from "./matrices/units_report.ts";
import type { SchedulerCounts } from "./schedule/scheduler.ts";
import type { SpeculationReport } from "./schedule/speculation.ts";
import type { AcceptThresholds } from "../speculate/accept_thresholds.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { TunedReport } from "./tune/tuned.ts";

/** What is known of an engine once it is open: plain data, which structuredClone copies. */
export interface EngineInfo
  extends Pick<EngineText, "hasChatTemplate" | "chatTemplate" | "reasoning" | "generation"> {
  /** The target's checkpoint. */
  readonly name: string;
  readonly draftName: string | undefined;
  /** See SpeculativeStats. */
  readonly algorithm: string;
  readonly weights: WeightReport;
  /** What `autotune` did; undefined where it was not asked for or there is no hardware. */
  readonly tuned: TunedReport | undefined;
  /** What the device's matrix units multiply; undefined where there are none, or they are not used. */
  readonly units?: UnitsReport | undefined;
  /** What rounds cost, in a line, where that was measured for the policy. */
  readonly costsLine?: string | undefined;
  /** How keys and values are kept. */
  readonly kvDtype: KvDtype;
  /** Capacity of the KV cache in tokens, over all sequences; absent if the engine is not one of this program's own. */
  readonly kvTokens?: number | undefined;
  /** Thresholds of relaxed acceptance, with which the text is not lossless; undefined: acceptance is lossless. */
  readonly acceptThresholds: AcceptThresholds | undefined;
  /** Tokens a sequence may hold, prompt and output. */
  readonly contextLength: number;
  /** Maximum of `--context-length`: positions that the model has. */
  readonly maxContextLength: number;
  /** Maximum tokens of one request, prompt and output: fewer than the context if `maxKvTokens` is smaller. */
  readonly requestTokens?: number | undefined;
  readonly loadMs: number;
  /** The part of loadMs in which kernels were compiled and ran once. */
  readonly compileMs: number;
  readonly device: DeviceInfo;
  /** Tier of a request that does not set its number of steps. */
  readonly tier: DraftShape;
  /** The tiers that were built and the bytes they add. */
  readonly tiers: { readonly shapes: readonly DraftShape[]; readonly bytes: number };
}

/** What an engine did until now. Plain data. */
export interface EngineStatus {
  readonly counts: Readonly<SchedulerCounts>;
  readonly speculation: SpeculationReport;
  /** KV pages of 16 tokens. `free` includes pages that only the prefix cache holds. */
  readonly pages: { readonly free: number; readonly total: number };
}

/**
 * A target, its draft and a device, ready for requests: in this thread (`openEngine`) or in another one
 * (`engineInWorker`), where nothing that it does keeps the caller's thread busy.
 *
 * Disposing an engine stops it. If it is in another thread, disposing waits until that thread is idle, unless an abort
 * has shown that the thread does not answer. The thread itself continues until the process ends or `terminate` is
 * called: with NVIDIA's driver 580 a process crashes if it ends while a thread with a device is busy or is being ended.
 */
export interface Engine extends AsyncDisposable {
  readonly info: EngineInfo;
  /**
   * Token ids of a prompt. For an engine in another thread, a separate text thread encodes prompts one after the other,
   * so encoding does not delay the engine's rounds.
   *
   * @throws UsageError for a prompt that cannot be encoded; the signal's reason where it aborts first.
   */
  encodePrompt(input: PromptInput, signal?: AbortSignal): Promise<readonly number[]>;
  /**
   * The text of token ids, special tokens included; computed where `encodePrompt` is.
   *
   * @throws UsageError for an id that is no token and for more than a million ids.
   */
  decode(ids: readonly number[], signal?: AbortSignal): Promise<string>;
  /** Each token alone; @throws UsageError as `decode`. */
  pieces(ids: readonly number[], signal?: AbortSignal): Promise<readonly TokenPiece[]>;
  /**
   * Runs a request in a batch with all others. Its text depends on the request alone. A request that cannot be used
   * ends with a UsageError. An engine in another thread ends a request within INTERRUPT_MS of an abort, whatever the
   * device computes.
   */
  submit(request: GenerateRequest): EventStream;
  /** The status now, or when the last request ended if the engine is in another thread. */
  readonly status: EngineStatus;
  /** Returns the status now: an engine in another thread answers between two rounds. */
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

/** Opens an engine, or a scripted one in tests. */
export type OpenEngine = (options: EngineOptions) => Promise<Engine>;
