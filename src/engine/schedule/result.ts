import { type SpeculativeStats, speculativeStats } from "../../speculate/stats.ts";
import type { FinishReason, GenerateRequest, GenerateResult, TextLogprobs } from "./events.ts";

/** One round of a request. */
export interface RoundRecord {
  readonly drafts: readonly number[];
  readonly accepted: number;
  /** Tokens that became output. */
  readonly emitted: number;
  readonly numSteps: number;
}

/** What a request came to. */
export interface Ended {
  readonly finishReason: FinishReason;
  readonly text: string;
  readonly ids: readonly number[];
  readonly rounds: readonly RoundRecord[];
  /** When it began, had its first token and ended: milliseconds of performance.now(). */
  readonly started: number;
  readonly prefilled: number;
  readonly ended: number;
  /** Prompt tokens that were cached. */
  readonly cached: number;
  readonly logprobs?: readonly TextLogprobs[];
}

/** @param engine.numSteps draft steps of a request that asks for none in particular. */
export function generateResult(
  engine: { readonly algorithm: SpeculativeStats["algorithm"]; readonly numSteps: number },
  { promptIds, numSteps = engine.numSteps }: GenerateRequest,
  { finishReason, text, ids, rounds, cached, logprobs, ...times }: Ended,
): GenerateResult {
  return {
    text,
    promptIds,
    outputIds: ids,
    finishReason,
    timing: timing(times, ids.length),
    cachedTokens: cached,
    speculative: summary(engine.algorithm, numSteps, rounds),
    drafts: rounds.map(({ drafts }) => drafts),
    ...logprobs && { logprobs },
  };
}

/** The setting reported is the deepest that a round ran with, else the one asked for. */
function summary(
  algorithm: SpeculativeStats["algorithm"],
  asked: number,
  rounds: readonly RoundRecord[],
): SpeculativeStats {
  const steps = rounds.length > 0
    ? Math.max(...rounds.map(({ numSteps }) => numSteps))
    : (algorithm === "NONE" ? 0 : asked);
  const setting = {
    algorithm: steps > 0 ? algorithm : "NONE",
    num_steps: steps,
    eagle_topk: steps > 0 ? 1 : 0,
    num_draft_tokens: steps > 0 ? steps + 1 : 0,
  } as const;
  const counts = rounds.map(({ drafts, accepted, emitted }) => (
    { drafted: drafts.length, accepted, emitted }
  ));
  return speculativeStats(setting, counts);
}

function timing(
  { started, prefilled, ended }: Pick<Ended, "started" | "prefilled" | "ended">,
  tokens: number,
): GenerateResult["timing"] {
  const prefillMs = prefilled - started;
  const decodeMs = ended - prefilled;
  const tokensPerSecond = decodeMs > 0 ? Math.max(0, tokens - 1) / decodeMs * 1000 : 0;
  return { prefillMs, decodeMs, timeToFirstTokenMs: prefillMs, tokensPerSecond };
}
