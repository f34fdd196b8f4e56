import { isHostAlgorithm } from "../../draft/algorithms.ts";
import { type RoundCount, type SpeculativeStats, speculativeStats } from "../../speculate/stats.ts";
import { chain, distinctTiers, type DraftShape } from "../../speculate/round_shape.ts";
import type {
  FinishReason,
  GenerateRequest,
  GenerateResult,
  PredictionCounts,
  TextLogprobs,
} from "./events.ts";

/** One round of a request. */
export interface RoundRecord {
  /** Up to the end of the output, as those accepted. */
  readonly drafts: readonly number[];
  readonly accepted: number;
  /** Tokens that became output. */
  readonly emitted: number;
  readonly tier: DraftShape;
  /** Whether its drafts came from the request's prediction; default false. */
  readonly predicted?: boolean | undefined;
}

/** The result of a request. */
export interface RequestOutcome {
  readonly finishReason: FinishReason;
  readonly text: string;
  readonly ids: readonly number[];
  readonly rounds: readonly RoundRecord[];
  /** When it was submitted, was admitted, had its first token and ended: milliseconds of the scheduler's clock. */
  readonly started: number;
  readonly admitted: number;
  readonly prefilled: number;
  /** Milliseconds between admission and first token in which kernels ran for the first time. */
  readonly compileMs: number;
  readonly ended: number;
  /** Prompt tokens that were cached. */
  readonly cached: number;
  readonly reasoningTokens: number;
  readonly logprobs?: readonly TextLogprobs[];
  /** The stop text that ended the output. */
  readonly stop?: string;
}

/** @param engine.tier of a request that does not set its number of steps. */
export function generateResult(
  engine: { readonly algorithm: SpeculativeStats["algorithm"]; readonly tier: DraftShape },
  { promptIds, numSteps, prediction }: GenerateRequest,
  { finishReason, text, ids, rounds, cached, reasoningTokens, logprobs, stop, ...times }:
    RequestOutcome,
): GenerateResult {
  return {
    text,
    promptIds,
    outputIds: ids,
    finishReason,
    timing: timing(times, ids.length),
    cachedTokens: cached,
    reasoningTokens,
    speculative: summary(
      engine.algorithm,
      numSteps === undefined ? engine.tier : chain(numSteps),
      rounds,
    ),
    ...prediction && { prediction: predictionCounts(rounds) },
    drafts: rounds.map(({ drafts }) => drafts),
    ...logprobs && { logprobs },
    ...stop !== undefined && { stop },
  };
}

function predictionCounts(rounds: readonly RoundRecord[]): PredictionCounts {
  const predicted = rounds.filter(({ predicted }) => predicted);
  return {
    drafted: predicted.reduce((sum, { drafts }) => sum + drafts.length, 0),
    accepted: predicted.reduce((sum, { accepted }) => sum + accepted, 0),
  };
}

/** The setting reported is the deepest that a round ran with, else the one asked for. */
function summary(
  algorithm: SpeculativeStats["algorithm"],
  asked: DraftShape,
  rounds: readonly RoundRecord[],
): SpeculativeStats {
  const none = algorithm === "NONE" ? chain(0) : asked;
  const { depth, width, rows } =
    distinctTiers([...new Set(rounds.map(({ tier }) => tier))]).at(-1) ?? none;
  // A drafter on the host may have had nothing to propose.
  const drafting = depth > 0 || (asked.depth > 0 && isHostAlgorithm(algorithm));
  const setting = {
    algorithm: drafting ? algorithm : "NONE",
    num_steps: depth,
    eagle_topk: depth > 0 ? width : 0,
    num_draft_tokens: depth > 0 ? rows : 0,
  } as const;
  return speculativeStats(setting, rounds.map(countOf));
}

function countOf({ drafts, tier, accepted, emitted }: RoundRecord): RoundCount {
  // Where the output ended before the round's last token, so did the levels that count.
  const depth = emitted > accepted ? tier.depth : Math.min(tier.depth, emitted);
  return { drafted: drafts.length, depth, accepted, emitted };
}

function timing(
  { started, admitted, prefilled, compileMs, ended }: Pick<
    RequestOutcome,
    "started" | "admitted" | "prefilled" | "compileMs" | "ended"
  >,
  tokens: number,
): GenerateResult["timing"] {
  const timeToFirstTokenMs = prefilled - started;
  const queuedMs = admitted - started;
  const prefillMs = Math.max(0, timeToFirstTokenMs - queuedMs - compileMs);
  const decodeMs = ended - prefilled;
  const tokensPerSecond = decodeMs > 0 ? Math.max(0, tokens - 1) / decodeMs * 1000 : 0;
  return { queuedMs, prefillMs, compileMs, decodeMs, timeToFirstTokenMs, tokensPerSecond };
}
