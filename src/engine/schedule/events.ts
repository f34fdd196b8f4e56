import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { TokenLogprob } from "../device/choice/logprobs.ts";
import type { CompileProgress } from "../device/first_runs.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import type { SpeculativeStats } from "../../speculate/stats.ts";

/** A token's log-probability with its text; half a character is U+FFFD. */
export interface TextLogprob extends TokenLogprob {
  readonly text: string;
  /** UTF-8 of the token where its text alone is half a character; absent: that of `text`. */
  readonly bytes?: readonly number[];
}

/** An output token's, see TokenLogprobs. */
export interface TextLogprobs extends TextLogprob {
  readonly top: readonly TextLogprob[];
}

export type FinishReason = "stop" | "length" | "interrupt";

/** One request. */
export interface GenerateRequest {
  readonly promptIds: readonly number[];
  readonly sampling: Sampling;
  /** Most tokens to generate; the context length bounds it too. */
  readonly maxTokens: number;
  /** Texts that end the output; they are not part of it. */
  readonly stop: readonly string[];
  /** Go on after an end-of-sequence token; with a grammar none is chosen. */
  readonly ignoreEos: boolean;
  /** What the output has to be, if anything in particular. */
  readonly grammar?: Grammar;
  /**
   * How many of the likeliest tokens are reported at each output token with their log-probabilities, besides the
   * token's own: 0 to MAX_LOGPROBS. Absent: no log-probabilities.
   */
  readonly logprobs?: number | undefined;
  /**
   * Draft steps a round (SGLang `speculative_num_steps`). Absent: the engine's policy or static depth decides. 0: no
   * drafts. Any other number is used only if the depth is static; if only the host drafts, it is the most.
   */
  readonly numSteps?: number;
  /**
   * Token ids that the output, or a part of it, is predicted to be: a source of drafts beside the engine's own. The
   * text does not depend on it. It needs an engine with `LimitOptions.predictions`, or with a host drafter that
   * `predicts`.
   */
  readonly prediction?: readonly number[];
  /** Aborting ends the request with reason "interrupt" after the rounds in flight. */
  readonly signal?: AbortSignal;
}

export interface GenerateResult {
  readonly text: string;
  readonly promptIds: readonly number[];
  /** Generated ids, the end-of-sequence token included. */
  readonly outputIds: readonly number[];
  readonly finishReason: FinishReason;
  /** The stop text that ended the output; absent: none did. */
  readonly stop?: string;
  readonly timing: {
    /** From submission until it was admitted: for its grammar, a slot and pages. */
    readonly queuedMs: number;
    /** Without queuedMs and compileMs. */
    readonly prefillMs: number;
    /**
     * Time for the first runs of the prompt's kernels, if they had not run before: an adapter may compile them then.
     */
    readonly compileMs: number;
    readonly decodeMs: number;
    readonly timeToFirstTokenMs: number;
    /** Generated tokens after the first, over decodeMs. */
    readonly tokensPerSecond: number;
  };
  /** Prompt tokens whose keys and values were already cached. */
  readonly cachedTokens: number;
  /** Output tokens up to the one that ends the reasoning; 0 where the text does not reason. */
  readonly reasoningTokens: number;
  readonly speculative: SpeculativeStats;
  /** Where the request had a prediction. */
  readonly prediction?: PredictionCounts;
  /** Drafted token ids of each round, target vocabulary. */
  readonly drafts: readonly (readonly number[])[];
  /** Log-probabilities of each output token, if the request asked for them. */
  readonly logprobs?: readonly TextLogprobs[];
}

/** Drafts from a request's prediction; they are included in those of its SpeculativeStats. */
export interface PredictionCounts {
  readonly drafted: number;
  /** Number of drafts that became output. */
  readonly accepted: number;
}

/** What a request yields, in order: prefill..., (round, text?)..., text?, then finish or error. */
export type EngineEvent =
  | {
    readonly kind: "prefill";
    readonly done: number;
    readonly total: number;
    readonly cached: number;
    /** While kernels of the next chunk run for the first time. */
    readonly compiling?: CompileProgress;
  }
  | {
    readonly kind: "round";
    readonly ids: readonly number[];
    readonly accepted: number;
    /**
     * What was verified: token by token of a chain, the nodes of a tree in the order of their rows; not those after the
     * end of the output.
     */
    readonly drafts: readonly number[];
    /** Shape of the round's drafts; undefined for the token that prefill chose, which is no round. */
    readonly tier: DraftShape | undefined;
    /** Whether the drafts come from the request's prediction; default false. */
    readonly predicted?: boolean;
    /** See GenerateResult, up to now; default 0. */
    readonly reasoningTokens?: number;
    /** Log-probabilities of each of `ids`, if the request asked for them. */
    readonly logprobs?: readonly TextLogprobs[];
  }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "finish"; readonly result: GenerateResult }
  | { readonly kind: "error"; readonly error: Error };

/** Reads a request's events to its end. `onEvent` sees those before the last. */
export async function resultOf(
  events: AsyncIterable<EngineEvent>,
  onEvent: (event: EngineEvent) => void = () => {},
): Promise<GenerateResult> {
  for await (const event of events) {
    if (event.kind === "finish") return event.result;
    onEvent(event);
  }
  throw new Error("the engine ended a request without a finish event");
}
