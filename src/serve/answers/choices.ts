import type { TextLogprobs } from "../../engine/schedule/events.ts";
import { answer, type AnswerOutcome, type Piece, type Reading } from "./answer.ts";
import { type Ask, encodePrediction, encodePrompt, type Prompt, requestOf } from "./ask.ts";
import { type ApiError, unavailable, waitedTooLong } from "../http/errors.ts";
import { merged } from "./merge.ts";
import type { Call } from "../service/route.ts";
import type { Ready, ServiceOptions } from "../service/service.ts";
import type { LiveRequest } from "../service/table.ts";
import { reported } from "../service/log.ts";
import type { Trace } from "../service/trace.ts";

/** Several answers to prompts, on their way. */
export interface Choices {
  /** Pieces as they come, with the number of their answer. */
  readonly pieces: AsyncGenerator<readonly [choice: number, piece: Piece], void, void>;
  /** Ends them all. */
  readonly leave: () => void;
  /** Ends them all because of an error after the status was sent; returns what the client is told, see `reported`. */
  readonly failed: (error: unknown) => ApiError;
}

/**
 * Asks for `count` answers to each prompt; the first prompt's come first. It returns when one of them has
 * begun, so that a request is refused before its stream begins. If all of them wait for a slot, it returns
 * after a second, so that the client gets its headers.
 *
 * @throws ApiError as `encodePrompt` and `answer`; 429 where too many requests wait.
 */
export async function openChoices(
  { service, signal, trace }: Pick<Call, "service" | "signal" | "trace">,
  { ready, prompts, ask, reading, count }: {
    readonly ready: Ready;
    readonly prompts: readonly Prompt[];
    readonly ask: Ask;
    readonly reading: Reading;
    readonly count: number;
  },
): Promise<Choices> {
  if (trace.texts) trace.texts.prompts = prompts;
  const entries = service.table.enter(prompts.length * count, trace.id, {
    // Of a completion with several prompts the prompts are at fault where one answer to each is asked for.
    field: count > 1 ? "n" : "messages",
    grammarField: ask.grammarField,
  });
  trace.answers.push(...entries);
  const { maxQueueMs } = service.options;
  const left = new AbortController();
  const ends = AbortSignal.any([signal, left.signal]);
  const { options } = service;
  const encoding = requestsOf({ ready, prompts, ask, count, options, signal: ends });
  const requests = await within(encoding, maxQueueMs).catch((error) => {
    left.abort();
    service.table.leave(entries);
    throw error;
  });
  const answers = requests.map((request, index) => {
    const entry = entries[index] as LiveRequest;
    return answer(service, { ready, reading, request, entry, signal: ends });
  });
  const pieces = trace.texts ? logged(merged(answers), trace.texts) : merged(answers);
  // Also ends answers whose stream has not been read yet.
  const leave = () => {
    left.abort();
    pieces.return().catch(() => {});
  };
  const failed = (error: unknown) => {
    leave();
    return reported(error, { log: service.log, trace });
  };
  const first = pieces.next();
  try {
    await Promise.race([first, elapsed(headersMs(maxQueueMs), first)]);
    return { pieces: withFirst(first, pieces, ends), leave, failed };
  } catch (error) {
    leave();
    throw error;
  }
}

/** A stream whose answer has not begun gets its headers after this, ms. */
const HEADERS_MS = 1000;

/** Where --max-queue-ms is short, the headers wait for it too, so that a timeout gives the status 503. */
function headersMs(maxQueueMs: number | undefined): number {
  return HEADERS_MS + (maxQueueMs !== undefined && maxQueueMs <= 10_000 ? maxQueueMs : 0);
}

/** Returns the value if it resolves within `ms`. @throws ApiError (503) if it does not. */
async function within<T>(value: Promise<T>, ms: number | undefined): Promise<T> {
  if (ms === undefined) return await value;
  const late = Symbol();
  const got = await Promise.race([value, elapsed(ms, value).then((): typeof late => late)]);
  if (got === late) throw waitedTooLong(ms);
  return got;
}

/** Resolves after `ms`; its timer ends when `other` settles. */
function elapsed(ms: number, other: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  other.catch(() => {}).finally(() => clearTimeout(timer));
  return promise;
}

/** `count` requests for each prompt. @throws ApiError as `encodePrompt` and `encodePrediction`. */
async function requestsOf({ ready, prompts, ask, count, options, signal }: {
  readonly ready: Ready;
  readonly prompts: readonly Prompt[];
  readonly ask: Ask;
  readonly count: number;
  readonly options: ServiceOptions;
  readonly signal: AbortSignal;
}): Promise<ReturnType<typeof requestOf>[]> {
  const encoded = await Promise.all(prompts.map((prompt) => encodePrompt(ready, prompt, signal)));
  const prediction = ask.prediction === undefined
    ? undefined
    : await encodePrediction(ready, ask.prediction, signal);
  return encoded.flatMap((promptIds) =>
    Array.from(
      { length: count },
      (_, choice) => requestOf(ask, { promptIds, prediction, ready, options, choice }),
    )
  );
}

/** Passes the pieces on and keeps their texts for the log. */
async function* logged(
  pieces: Choices["pieces"],
  { outputs }: NonNullable<Trace["texts"]>,
): Choices["pieces"] {
  for await (const each of pieces) {
    const [choice, piece] = each;
    outputs[choice] = (outputs[choice] ?? "") + loggedText(piece);
    yield each;
  }
}

function loggedText(piece: Piece): string {
  if (piece.kind === "call") return `${piece.name} `;
  const { kind } = piece;
  return kind === "text" || kind === "reasoning" || kind === "arguments" ? piece.text : "";
}

/** @throws ApiError where the client has left: what it has read is no whole answer. */
async function* withFirst<T>(
  first: Promise<IteratorResult<T, void>>,
  rest: AsyncGenerator<T, void, void>,
  signal: AbortSignal,
): AsyncGenerator<T, void, void> {
  try {
    const { value, done } = await first;
    if (!done) {
      yield value;
      yield* rest;
    }
    if (signal.aborted) throw unavailable("the client has left");
  } finally {
    rest.return().catch(() => {});
  }
}

/** A whole answer. */
export interface WholeAnswer {
  text: string;
  reasoning: string;
  readonly calls: { name: string; arguments: string }[];
  readonly logprobs: TextLogprobs[];
  readonly rounds: { tokens: number; accepted: number; drafted: number }[];
  ended: AnswerOutcome;
}

/** Reads answers to their ends. */
export async function gather({ pieces, leave }: Choices): Promise<WholeAnswer[]> {
  const gathered: WholeAnswer[] = [];
  try {
    for await (const [choice, piece] of pieces) {
      gathered[choice] ??= newGathered();
      add(gathered[choice], piece);
    }
  } catch (error) {
    leave();
    throw error;
  }
  return gathered;
}

function newGathered(): WholeAnswer {
  const ended = undefined as unknown as AnswerOutcome; // the last piece sets it
  return { text: "", reasoning: "", calls: [], logprobs: [], rounds: [], ended };
}

function add(to: WholeAnswer, piece: Piece): void {
  switch (piece.kind) {
    case "text":
      to.text += piece.text;
      return;
    case "reasoning":
      to.reasoning += piece.text;
      return;
    case "call":
      to.calls.push({ name: piece.name, arguments: "" });
      return;
    case "arguments": {
      const call = to.calls[piece.index];
      if (call) call.arguments += piece.text;
      return;
    }
    case "round": {
      const { tokens, accepted, drafted, logprobs } = piece;
      to.rounds.push({ tokens, accepted, drafted });
      to.logprobs.push(...logprobs);
      return;
    }
    case "end":
      to.ended = piece.ended;
  }
}
