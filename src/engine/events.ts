import type { Sampling } from "../speculate/sampling.ts";

export type FinishReason = "stop" | "length" | "interrupt";

/** One request. */
export interface GenerateRequest {
  readonly promptIds: readonly number[];
  readonly sampling: Sampling;
  /** Most tokens to generate; the context length bounds it too. */
  readonly maxTokens: number;
  /** Texts that end the output; they are not part of it. */
  readonly stop: readonly string[];
  /** Go on after an end-of-sequence token. */
  readonly ignoreEos: boolean;
  /** Draft steps a round (SGLang `speculative_num_steps`); 0 = plain decoding. */
  readonly numSteps: number;
  /** Aborting ends the request with reason "interrupt" after the round in flight. */
  readonly signal?: AbortSignal;
}

/** Counts of one finished request; the names are those of `--json`. */
export interface SpeculativeStats {
  readonly algorithm: "EAGLE" | "EAGLE3" | "NONE";
  readonly num_steps: number;
  readonly eagle_topk: number;
  readonly num_draft_tokens: number;
  readonly rounds: number;
  readonly draft_tokens: number;
  /** Drafts only, the bonus token not counted. */
  readonly accepted_tokens: number;
  /** Tokens a round, the bonus included; 0 when there was no round. */
  readonly mean_accept_length: number;
  readonly draft_acceptance_rate: number;
  /** Share of rounds that accepted the draft at position k (unconditional). */
  readonly acceptance_per_position: readonly number[];
  readonly accepted_per_round: readonly number[];
}

export interface GenerateResult {
  readonly text: string;
  readonly promptIds: readonly number[];
  /** Generated ids, the end-of-sequence token included. */
  readonly outputIds: readonly number[];
  readonly finishReason: FinishReason;
  readonly timing: {
    readonly prefillMs: number;
    readonly decodeMs: number;
    readonly timeToFirstTokenMs: number;
    /** Generated tokens after the first, over decodeMs. */
    readonly tokensPerSecond: number;
  };
  /** Prompt tokens whose keys and values were already cached. */
  readonly cachedTokens: number;
  readonly speculative: SpeculativeStats;
  /** Drafted token ids of each round, target vocabulary. */
  readonly drafts: readonly (readonly number[])[];
}

/** What a request yields, in order: prefill..., (round, text?)..., finish. */
export type EngineEvent =
  | {
    readonly kind: "prefill";
    readonly done: number;
    readonly total: number;
    readonly cached: number;
  }
  | { readonly kind: "round"; readonly ids: readonly number[]; readonly accepted: number }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "finish"; readonly result: GenerateResult };
