import { NOT_A_TOKEN } from "../../../kernels/lib/rows.ts";
import { UsageError } from "../../errors.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import type { SpeculativeStats } from "../../speculate/stats.ts";
import type { Constraint } from "../../grammar/constraint.ts";
import { bodyStopScanner, reasoningCounter, type ReasoningParts } from "../../text/reasoning.ts";
import { textStream } from "../../text/stream.ts";
import type { TokenBytes } from "../../text/token_bytes.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";
import type { TokenLogprob, TokenLogprobs } from "../device/choice/logprobs.ts";
import type { EngineEvent, FinishReason, GenerateRequest, TextLogprobs } from "./events.ts";
import { generateResult, type RequestOutcome, type RoundRecord } from "./result.ts";

/** What turns tokens into a request's output. */
export interface OutputConfig {
  readonly tokenizer: Tokenizer;
  /** The tokens' bytes, for logprobs of half characters; @throws where the decoder is not known. */
  readonly tokens?: () => TokenBytes;
  /** Name of the target, for messages. */
  readonly name: string;
  /** The target's token ids are 0 to one less than this. */
  readonly vocabSize: number;
  readonly eosTokenIds: readonly number[];
  readonly algorithm: SpeculativeStats["algorithm"];
  /** Tokens a sequence may hold. */
  readonly contextLength: number;
  /** Tier of a request that does not set its number of steps. */
  readonly tier: DraftShape;
  /** How the target reasons; absent: not at all. */
  readonly reasoning?: ReasoningParts;
}

const NO_REASONING: ReasoningParts = { marks: undefined, openings: [] };

/** What a round adds to a request's output. */
export interface RoundOutput {
  readonly ids: readonly number[];
  readonly accepted: number;
  readonly drafts: readonly number[];
  /** Undefined for the token that prefill chose: that is no round. */
  readonly tier: DraftShape | undefined;
  /** See RoundRecord. */
  readonly predicted?: boolean | undefined;
  /** Log-probabilities of each of `ids`: at least those that the request asked for. */
  readonly logprobs?: readonly TokenLogprobs[] | undefined;
}

/** A thrown value, which may be undefined itself. */
export interface Failure {
  readonly thrown: unknown;
}

/** Folds the rounds of one request into text, stops and counts. */
export interface OutputAccumulator {
  /** Tokens until now. */
  readonly tokens: number;
  readonly finished: FinishReason | undefined;
  /** Why the token after the output cannot be added: its logits are broken, or its grammar refuses it. */
  readonly failure: Failure | undefined;
  /** Tokens that may still be added. */
  readonly left: number;
  /**
   * Adds a round, up to a token that fails; returns the events that it causes.
   *
   * @param constraint is advanced by the tokens; the output ends where nothing may follow.
   */
  take(round: RoundOutput, constraint?: Constraint): EngineEvent[];
  /** The last events: what was held back, and the result. */
  end(
    ended: Pick<
      RequestOutcome,
      "started" | "admitted" | "prefilled" | "compileMs" | "ended" | "cached" | "ids"
    >,
  ): EngineEvent[];
}

export function openOutput(outputs: OutputConfig, request: GenerateRequest): OutputAccumulator {
  const { tokenizer, eosTokenIds, contextLength, reasoning = NO_REASONING } = outputs;
  const stream = textStream(tokenizer);
  const reasoned = reasoningCounter(reasoning, request.promptIds);
  const scanner = bodyStopScanner(request.stop, reasoning, request.promptIds);
  const most = Math.min(request.maxTokens, contextLength - request.promptIds.length);
  let tokens = 0;
  const rounds: RoundRecord[] = [];
  const logprobs: TextLogprobs[] = [];
  let text = "";
  let finished: FinishReason | undefined;
  let failure: Failure | undefined;
  /** The stop text that ended the output. */
  let stop: string | undefined;

  /** Counts one token. */
  function count(id: number, constraint: Constraint | undefined): void {
    if (id === NOT_A_TOKEN) throw brokenLogits(outputs, request.promptIds.length + tokens);
    constraint?.take(id);
    tokens++;
    if (constraint?.complete || (!request.ignoreEos && eosTokenIds.includes(id))) finished = "stop";
    else if (tokens >= most) finished = "length";
  }

  /** Adds tokens to the text stream; returns the text that can be shown now, which may be empty. */
  function show(ids: readonly number[]): string {
    const added = stream.push(ids);
    reasoned.push(added);
    const { text: piece, stop: found } = scanner.push(added);
    if (found !== undefined) [finished, stop] = ["stop", found];
    return piece;
  }

  /**
   * Adds a round's tokens up to the one that ends the output or before the one that fails. They are decoded together,
   * unless the exact token of a stop text or of the end of the reasoning must be found.
   */
  function add(ids: readonly number[], constraint: Constraint | undefined): string {
    let shown = 0;
    let taken = 0;
    let piece = "";
    while (taken < ids.length && !finished) {
      try {
        count(ids[taken] as number, constraint);
      } catch (thrown) {
        failure = { thrown };
        break;
      }
      taken++;
      if (request.stop.length === 0 && reasoned.over) continue;
      piece += show(ids.slice(shown, taken));
      shown = taken;
    }
    return shown < taken ? piece + show(ids.slice(shown, taken)) : piece;
  }

  /** The log-probabilities that the request asked for, of a round's first `kept` tokens. */
  function logprobsOf(round: RoundOutput, kept: number): { logprobs: TextLogprobs[] } | undefined {
    const { logprobs: most } = request;
    if (most === undefined) return undefined;
    const withText = <One extends TokenLogprob>(one: One) => {
      const text = tokenizer.decode([one.id]);
      const bytes = text.includes("\ufffd") ? bytesOf(outputs, one.id) : [];
      return bytes.length > 0 ? { ...one, text, bytes } : { ...one, text };
    };
    const reported = round.logprobs?.slice(0, kept) ?? [];
    return {
      logprobs: reported.map((one) => ({
        ...withText(one),
        top: one.top.slice(0, most).map(withText),
      })),
    };
  }

  return {
    get tokens() {
      return tokens;
    },
    get finished() {
      return finished;
    },
    get failure() {
      return failure;
    },
    get left() {
      return most - tokens;
    },
    take(round, constraint) {
      const before = tokens;
      const piece = add(round.ids, constraint);
      const kept = round.ids.slice(0, tokens - before);
      if (kept.length === 0) return [];
      const accepted = Math.min(round.accepted, kept.length);
      const { tier, predicted } = round;
      // Drafts after the end of the output were neither accepted nor rejected.
      const drafts = kept.length < round.ids.length
        ? round.drafts.slice(0, kept.length)
        : round.drafts;
      if (tier) rounds.push({ drafts, accepted, emitted: kept.length, tier, predicted });
      text += piece;
      const reported = logprobsOf(round, kept.length);
      logprobs.push(...reported?.logprobs ?? []);
      const { tokens: reasoningTokens } = reasoned;
      const more = {
        ...predicted && { predicted },
        ...reasoningTokens > 0 && { reasoningTokens },
        ...reported,
      };
      const events: EngineEvent[] = [
        { kind: "round", ids: kept, accepted, drafts, tier, ...more },
      ];
      return piece ? [...events, { kind: "text", text: piece }] : events;
    },
    end(ended) {
      const held = scanner.push(stream.end());
      // A stop text that half a character completes cuts the text as any other does.
      if (held.stop !== undefined) [finished, stop] = ["stop", held.stop];
      const rest = held.text + scanner.end();
      const finishReason = finished ?? "interrupt";
      const reported = request.logprobs === undefined ? {} : { logprobs };
      const { tokens: reasoningTokens } = reasoned;
      const got = {
        ...ended,
        finishReason,
        text: text + rest,
        rounds,
        reasoningTokens,
        ...reported,
        ...stop !== undefined && { stop },
      };
      const result = generateResult(outputs, request, got);
      const last: EngineEvent = { kind: "finish", result };
      return rest ? [{ kind: "text", text: rest }, last] : [last];
    },
  };
}

/** Empty where the tokenizer's decoder does not tell the bytes of its tokens. */
function bytesOf({ tokens }: OutputConfig, id: number): number[] {
  try {
    return [...tokens?.().bytes[id] ?? []];
  } catch (error) {
    if (error instanceof UsageError) return [];
    throw error;
  }
}

function brokenLogits({ name }: OutputConfig, position: number): UsageError {
  return new UsageError(
    `Cannot generate with "${name}": the logits at position ${position} are not numbers`,
  );
}
