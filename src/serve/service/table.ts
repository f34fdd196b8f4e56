import type { Engine } from "../../engine/engine.ts";
import { EventStream } from "../../engine/schedule/event_stream.ts";
import type { EngineEvent, GenerateRequest } from "../../engine/schedule/events.ts";
import { UsageError } from "../../errors.ts";
import { ApiError, engineFailed, invalid, tooMany } from "../http/errors.ts";
import type { Metrics } from "./metrics.ts";

/** One answer that is asked for. Times are performance.now(). */
export interface LiveRequest {
  readonly id: number;
  /** The id of its HTTP request. */
  readonly requestId: string;
  /** 0 until its prompt is encoded. */
  promptTokens: number;
  readonly arrived: number;
  state: "encoding" | "waiting" | "prompt" | "decoding";
  /** Its place among those that run: 0 to max batch - 1. */
  slot: number | undefined;
  admitted: number | undefined;
  firstToken: number | undefined;
  /** When the engine last did something for it. */
  heard: number;
  /** When it left the table. */
  left: number | undefined;
  cachedTokens: number;
  promptDone: number;
  outputTokens: number;
  rounds: number;
  draftTokens: number;
  acceptedTokens: number;
  /** Draft steps of its last round. */
  depth: number;
  /** The answer has all that was asked for: the server ends it, and that is no abort. */
  complete: boolean;
  /** The API's field that its grammar comes from. */
  readonly grammarField: string | undefined;
}

/** All requests that the engine has or will get. Every request reaches the engine through this table. */
export interface RequestTable {
  readonly live: ReadonlySet<LiveRequest>;
  readonly running: number;
  /** Number of requests whose prompt is being encoded, or that wait for a slot. */
  readonly waiting: number;
  /** Milliseconds since the engine gave a sign of life; 0 while nobody waits for one. */
  readonly silentMs: number;
  /** Why no request can be answered any more. */
  readonly failure: Error | undefined;
  /**
   * Takes places for `count` answers, before their prompts are encoded. A finished answer that its client
   * has not read to the end has no slot any more, but it keeps its place, because it takes memory.
   *
   * @param field of the request that says how many, for the error.
   * @throws ApiError: 429 where there are not as many places, 400 where there never will be.
   */
  enter(
    count: number,
    requestId: string,
    of?: { readonly field?: string; readonly grammarField?: string | undefined },
  ): readonly LiveRequest[];
  /** Gives back places for which `generate` was not called. */
  leave(entries: readonly LiveRequest[]): void;
  /** Counts the encoding of a prompt without an answer as a request. @throws as `enter`, `work`. */
  encoding<T>(requestId: string, work: () => Promise<T>): Promise<T>;
  /**
   * Runs a request until its end or until its signal aborts, and gives its place back. A client that
   * reads slowly does not slow the engine down.
   *
   * @throws ApiError: 400 where the request cannot be used, 500 where its computation failed, 503 where the engine had
   * failed before.
   */
  generate(
    engine: Engine,
    request: GenerateRequest,
    entry: LiveRequest,
  ): AsyncGenerator<EngineEvent, void, void>;
}

export function requestTable(
  { maxBatch, maxQueue, metrics, onFailure, now = () => performance.now() }: {
    readonly maxBatch: number;
    /** Requests that may wait for a slot. */
    readonly maxQueue: number;
    readonly metrics: Metrics;
    /** Called with the error after which no request can be answered any more. */
    readonly onFailure: (error: Error) => void;
    readonly now?: () => number;
  },
): RequestTable {
  const live = new Set<LiveRequest>();
  let ids = 0;
  let heard = 0;
  let failure: Error | undefined;
  /** Places in use: running or waiting answers, and finished ones that their clients have not read to the end. */
  let taken = 0;

  const enter: RequestTable["enter"] = (count, requestId, { field = "n", grammarField } = {}) => {
    const most = maxBatch + maxQueue;
    if (count > most) {
      throw invalid(
        `${count} answers are asked for, and at most ${most} requests run or wait at a time`,
        field,
      );
    }
    if (taken + count > most) throw tooMany(taken - maxBatch);
    if (live.size === 0) heard = now();
    taken += count;
    return Array.from({ length: count }, () => newEntry(requestId, grammarField));
  };

  function newEntry(requestId: string, grammarField: string | undefined): LiveRequest {
    const arrived = now();
    const entry: LiveRequest = {
      id: ids++,
      requestId,
      grammarField,
      promptTokens: 0,
      arrived,
      state: "encoding",
      slot: undefined,
      admitted: undefined,
      firstToken: undefined,
      heard: arrived,
      left: undefined,
      cachedTokens: 0,
      promptDone: 0,
      outputTokens: 0,
      rounds: 0,
      draftTokens: 0,
      acceptedTokens: 0,
      depth: 0,
      complete: false,
    };
    live.add(entry);
    return entry;
  }

  function leave(entries: readonly LiveRequest[]): void {
    taken -= entries.length;
    for (const entry of entries) depart(entry);
  }

  function depart(entry: LiveRequest): void {
    live.delete(entry);
    heard = now();
    entry.left = heard;
  }

  function note(entry: LiveRequest, event: EngineEvent): void {
    heard = now();
    entry.heard = heard;
    if (event.kind === "prefill") {
      if (entry.admitted === undefined) metrics.queued((heard - entry.arrived) / 1000);
      entry.admitted ??= heard;
      entry.slot ??= freeSlot(live);
      entry.state = "prompt";
      entry.cachedTokens = event.cached;
      entry.promptDone = event.done;
    } else if (event.kind === "round") {
      if (entry.firstToken === undefined) metrics.firstToken((heard - entry.arrived) / 1000);
      entry.firstToken ??= heard;
      entry.state = "decoding";
      entry.outputTokens += event.ids.length;
      metrics.tokens(event.ids.length);
      if (event.tier === undefined) return;
      entry.rounds++;
      entry.draftTokens += event.drafts.length;
      entry.acceptedTokens += event.accepted;
      entry.depth = event.tier.depth;
      metrics.round(event.drafts.length, event.accepted);
    }
  }

  function ended(entry: LiveRequest, reason: string): void {
    depart(entry);
    const { firstToken, arrived, outputTokens, promptTokens, cachedTokens } = entry;
    const perToken = firstToken === undefined || outputTokens < 2
      ? undefined
      : (now() - firstToken) / 1000 / (outputTokens - 1);
    const seconds = (now() - arrived) / 1000;
    const prompt = entry.admitted === undefined ? undefined : { promptTokens, cachedTokens };
    metrics.request({ reason, seconds, perToken, outputTokens, prompt });
  }

  /** Counts an event of the engine; turns its error into an ApiError. */
  function counted(entry: LiveRequest, event: EngineEvent): EngineEvent {
    note(entry, event);
    if (event.kind === "finish") {
      const { finishReason } = event.result;
      const cut = entry.complete ? "stop" : "abort";
      ended(entry, finishReason === "interrupt" ? cut : finishReason);
    } else if (event.kind === "error") {
      if (!(event.error instanceof UsageError) && failure === undefined) {
        failure = event.error;
        onFailure(failure);
      }
      ended(entry, "error");
      return { kind: "error", error: engineError(event.error, entry) };
    }
    return event;
  }

  return {
    live,
    get running() {
      return [...live].filter(({ state }) => state === "prompt" || state === "decoding").length;
    },
    get waiting() {
      return [...live].filter(({ state }) => state === "encoding" || state === "waiting").length;
    },
    get silentMs() {
      return live.size === 0 ? 0 : now() - heard;
    },
    get failure() {
      return failure;
    },
    enter,
    leave,
    async encoding(requestId, work) {
      const entries = enter(1, requestId);
      try {
        return await work();
      } finally {
        leave(entries);
      }
    },
    async *generate(engine, request, entry) {
      entry.promptTokens = request.promptIds.length;
      entry.state = "waiting";
      heard = now();
      const events = new EventStream(() => running.cancel());
      const running = engine.submit(request);
      running.listen((event) => events.push(counted(entry, event)));
      try {
        yield* events;
      } finally {
        taken--;
      }
    },
  };
}

/** The names that a chat has for the engine's fields; other APIs rename them (`apiPost`). */
const PARAMS: Readonly<Record<string, string>> = {
  logitBias: "logit_bias",
  maxTokens: "max_tokens",
  numSteps: "num_steps",
  prediction: "prediction",
  promptIds: "messages",
  stop: "stop",
};

/**
 * The engine's error as an ApiError. A UsageError before the request was admitted is the request's mistake, and one of
 * its grammar always is.
 */
function engineError(error: Error, { admitted, grammarField }: LiveRequest): ApiError {
  if (error instanceof ApiError) return error;
  const { message } = error;
  if (!(error instanceof UsageError)) {
    return admitted === undefined ? engineFailed(error) : new ApiError(500, message);
  }
  const { field = "" } = error;
  if (field === "grammar") return invalid(message, grammarField ?? null);
  return admitted === undefined
    ? invalid(message, PARAMS[field] ?? null)
    : new ApiError(500, message);
}

/** The lowest number that no running request has. */
function freeSlot(live: ReadonlySet<LiveRequest>): number {
  const taken = new Set([...live].map(({ slot }) => slot));
  let slot = 0;
  while (taken.has(slot)) slot++;
  return slot;
}
