import { NOT_A_TOKEN } from "../../shaders/choose.ts";
import { UsageError } from "../errors.ts";
import { type RoundCount, type SpeculativeStats, speculativeStats } from "../speculate/stats.ts";
import { stopScanner } from "../text/stop.ts";
import { textStream } from "../text/stream.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import type { EngineEvent, FinishReason, GenerateRequest, GenerateResult } from "./events.ts";

/** What turns tokens into a request's output. */
export interface Outputs {
  readonly tokenizer: Tokenizer;
  /** Of the target, for messages. */
  readonly name: string;
  readonly eosTokenIds: readonly number[];
  readonly algorithm: SpeculativeStats["algorithm"];
  /** Tokens a sequence may hold. */
  readonly contextLength: number;
  /** Draft steps of a request that asks for none in particular. */
  readonly numSteps: number;
}

/** What a lane of a round adds. */
export interface Taken {
  readonly ids: readonly number[];
  readonly accepted: number;
  readonly drafts: readonly number[];
  /** Undefined for the token that prefill chose: that is no round. */
  readonly numSteps: number | undefined;
}

/** When a request began and what it found cached. Milliseconds of performance.now(). */
export interface Clock {
  readonly started: number;
  readonly prefilled: number;
  readonly ended: number;
  readonly cached: number;
}

/** Folds the rounds of one request into text, stops and counts. */
export interface Output {
  readonly ids: readonly number[];
  readonly finished: FinishReason | undefined;
  /** Tokens that may still be added. */
  readonly left: number;
  /** Adds a round; what it makes visible. */
  take(round: Taken): EngineEvent[];
  /** The last events: what was held back, and the result. */
  end(clock: Clock): EngineEvent[];
}

/** @throws UsageError (from take) when the device chose from broken logits. */
export function openOutput(outputs: Outputs, request: GenerateRequest): Output {
  const { tokenizer, eosTokenIds, contextLength } = outputs;
  const stream = textStream(tokenizer);
  const scanner = stopScanner(request.stop);
  const most = Math.min(request.maxTokens, contextLength - request.promptIds.length);
  const ids: number[] = [];
  const rounds: (RoundCount & { readonly numSteps: number })[] = [];
  const drafts: (readonly number[])[] = [];
  let text = "";
  let finished: FinishReason | undefined;

  /** Adds one token; its text if any. */
  function add(id: number): string {
    if (id === NOT_A_TOKEN) throw brokenLogits(outputs, request.promptIds.length + ids.length);
    ids.push(id);
    const ended = !request.ignoreEos && eosTokenIds.includes(id);
    const { text: piece, stopped } = scanner.push(stream.push([id]));
    if (ended || stopped) finished = "stop";
    else if (ids.length >= most) finished = "length";
    return piece;
  }

  return {
    ids,
    get finished() {
      return finished;
    },
    get left() {
      return most - ids.length;
    },
    take(round) {
      const before = ids.length;
      let piece = "";
      for (const id of round.ids) {
        if (finished) break;
        piece += add(id);
      }
      const kept = ids.slice(before);
      const accepted = Math.min(round.accepted, kept.length);
      const { numSteps } = round;
      if (numSteps !== undefined) {
        rounds.push({ drafted: round.drafts.length, accepted, emitted: kept.length, numSteps });
        drafts.push(round.drafts);
      }
      text += piece;
      const events: EngineEvent[] = [{ kind: "round", ids: kept, accepted }];
      return piece ? [...events, { kind: "text", text: piece }] : events;
    },
    end(clock) {
      const held = scanner.push(stream.end());
      const rest = held.text + scanner.end();
      const speculative = summary(outputs, request, rounds);
      const result: GenerateResult = {
        text: text + rest,
        promptIds: request.promptIds,
        outputIds: ids,
        finishReason: finished ?? "interrupt",
        timing: timing(clock, ids.length),
        cachedTokens: clock.cached,
        speculative,
        drafts,
      };
      const last: EngineEvent = { kind: "finish", result };
      return rest ? [{ kind: "text", text: rest }, last] : [last];
    },
  };
}

function brokenLogits({ name }: Outputs, position: number): UsageError {
  return new UsageError(
    `Cannot generate with "${name}": the logits at position ${position} are not numbers`,
  );
}

/** The setting told is the deepest that a round ran with. */
function summary(
  { algorithm, numSteps }: Outputs,
  request: GenerateRequest,
  rounds: readonly (RoundCount & { readonly numSteps: number })[],
): SpeculativeStats {
  const steps = rounds.length > 0
    ? Math.max(...rounds.map((round) => round.numSteps))
    : (algorithm === "NONE" ? 0 : request.numSteps ?? numSteps);
  return speculativeStats({
    algorithm: steps > 0 ? algorithm : "NONE",
    num_steps: steps,
    eagle_topk: steps > 0 ? 1 : 0,
    num_draft_tokens: steps > 0 ? steps + 1 : 0,
  }, rounds);
}

function timing({ started, prefilled, ended }: Clock, tokens: number): GenerateResult["timing"] {
  const prefillMs = prefilled - started;
  const decodeMs = ended - prefilled;
  const tokensPerSecond = decodeMs > 0 ? Math.max(0, tokens - 1) / decodeMs * 1000 : 0;
  return { prefillMs, decodeMs, timeToFirstTokenMs: prefillMs, tokensPerSecond };
}
