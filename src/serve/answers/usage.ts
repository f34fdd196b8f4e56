import type { GenerateResult, PredictionCounts } from "../../engine/schedule/events.ts";
import type { AnswerOutcome } from "./answer.ts";

/** OpenAI's `usage`. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
  readonly completion_tokens_details: {
    readonly reasoning_tokens: number;
    readonly accepted_prediction_tokens: number;
    readonly rejected_prediction_tokens: number;
  };
}

/**
 * The usage of all answers to one prompt. Prediction tokens are the drafts from the request's prediction;
 * without a prediction all drafts are counted there, because OpenAI's clients know no other field for them.
 */
export function usageOf(answers: readonly AnswerOutcome[]): Usage {
  const [first] = answers;
  const prompt_tokens = first?.result.promptIds.length ?? 0;
  const sum = (of: (ended: AnswerOutcome) => number) =>
    answers.reduce((all, each) => all + of(each), 0);
  const completion_tokens = sum(({ result }) => result.outputIds.length);
  const drafted = sum(({ result }) => draftsOf(result).drafted);
  const accepted = sum(({ result }) => draftsOf(result).accepted);
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: first?.result.cachedTokens ?? 0 },
    completion_tokens_details: {
      reasoning_tokens: sum(({ reasoningTokens }) => reasoningTokens),
      accepted_prediction_tokens: accepted,
      rejected_prediction_tokens: drafted - accepted,
    },
  };
}

function draftsOf({ prediction, speculative }: GenerateResult): PredictionCounts {
  const { draft_tokens: drafted, accepted_tokens: accepted } = speculative;
  return prediction ?? { drafted, accepted };
}

/** The usage of several prompts. */
export function usageSum(parts: readonly Usage[]): Usage {
  const sum = (of: (usage: Usage) => number) => parts.reduce((all, each) => all + of(each), 0);
  return {
    prompt_tokens: sum((each) => each.prompt_tokens),
    completion_tokens: sum((each) => each.completion_tokens),
    total_tokens: sum((each) => each.total_tokens),
    prompt_tokens_details: {
      cached_tokens: sum((each) => each.prompt_tokens_details.cached_tokens),
    },
    completion_tokens_details: {
      reasoning_tokens: sum((each) => each.completion_tokens_details.reasoning_tokens),
      accepted_prediction_tokens: sum((each) =>
        each.completion_tokens_details.accepted_prediction_tokens
      ),
      rejected_prediction_tokens: sum((each) =>
        each.completion_tokens_details.rejected_prediction_tokens
      ),
    },
  };
}

/** llama-server's `timings` of one answer; times in milliseconds. */
export function timingsOf({ result }: AnswerOutcome): Readonly<Record<string, number>> {
  const { timing, promptIds, outputIds, cachedTokens, speculative } = result;
  const prompt_n = promptIds.length - cachedTokens;
  const prompt_ms = timing.prefillMs;
  const predicted_n = outputIds.length;
  const predicted_ms = timing.decodeMs;
  return {
    cache_n: cachedTokens,
    prompt_n,
    prompt_ms: rounded(prompt_ms),
    prompt_per_token_ms: rounded(ratio(prompt_ms, prompt_n)),
    prompt_per_second: rounded(ratio(prompt_n * 1000, prompt_ms)),
    predicted_n,
    predicted_ms: rounded(predicted_ms),
    // The prefill chose the first token, so decoding produced one less.
    predicted_per_token_ms: rounded(ratio(predicted_ms, Math.max(1, predicted_n - 1))),
    predicted_per_second: rounded(timing.tokensPerSecond),
    draft_n: speculative.draft_tokens,
    draft_n_accepted: speculative.accepted_tokens,
    queue_ms: rounded(timing.queuedMs),
  };
}

function ratio(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
