import type {
  GenerateRequest,
  GenerateResult,
  TextLogprobs,
} from "../../engine/schedule/events.ts";
import {
  type ReasoningStream,
  reasoningStream,
  type SeparatedPiece,
} from "../../text/reasoning.ts";
import { unavailable, waitedTooLong } from "../http/errors.ts";
import type { Ready, Service } from "../service/service.ts";
import type { LiveRequest } from "../service/table.ts";
import { callStream, type ToolPiece } from "../tools/call_stream.ts";
import type { Tool } from "../tools/tool.ts";

/** The pieces of an answer, in order, whichever API they go to. */
export type Piece =
  /** Its prompt is being computed. */
  | { readonly kind: "begin"; readonly promptTokens: number; readonly cachedTokens: number }
  | { readonly kind: "reasoning"; readonly text: string }
  | ToolPiece
  /** A round's tokens, before their text. */
  | {
    readonly kind: "round";
    readonly tokens: number;
    readonly accepted: number;
    readonly drafted: number;
    readonly logprobs: readonly TextLogprobs[];
  }
  | { readonly kind: "end"; readonly ended: AnswerOutcome };

export interface AnswerOutcome {
  readonly finish: "stop" | "length" | "tool_calls";
  readonly result: GenerateResult;
  /** Output tokens of the reasoning; 0 where it was not separated from the text. */
  readonly reasoningTokens: number;
}

/** How an output is read. */
export interface Reading {
  /** Separate the reasoning from the text. */
  readonly reasoning: boolean;
  /** Separate function calls from the text. */
  readonly calls?: {
    /** The beginning of the answer that the prompt already has. */
    readonly begun: string;
    /** End after this many. */
    readonly most: number;
    /** The functions: their schemas give types to arguments that are written without quotes. */
    readonly tools: readonly Tool[];
  } | undefined;
}

/**
 * Generates an answer. Leaving the iteration, or the signal, ends its computation.
 *
 * @throws ApiError as RequestTable.generate; 503 where the server stops first, or where the request
 * has waited for a slot for `maxQueueMs`.
 */
export async function* answer(
  service: Service,
  { ready, request, entry, reading, signal }: {
    readonly ready: Ready;
    /** Its place in the table. */
    readonly entry: LiveRequest;
    readonly request: Omit<GenerateRequest, "signal">;
    readonly reading: Reading;
    /** The client has gone. */
    readonly signal: AbortSignal;
  },
): AsyncGenerator<Piece, void, void> {
  const ending = new AbortController();
  const end = () => ending.abort();
  const reader = openReader(ready, request.promptIds, reading);
  let began = false;
  const { maxQueueMs } = service.options;
  let late = false;
  const waiting = maxQueueMs === undefined ? undefined : setTimeout(() => {
    late = true;
    end();
  }, Math.max(0, entry.arrived + maxQueueMs - performance.now()));
  if (signal.aborted) end();
  signal.addEventListener("abort", end);
  service.ends.add(end);
  const events = service.table.generate(
    ready.engine,
    { ...request, signal: ending.signal },
    entry,
  );
  try {
    for await (const event of events) {
      if (event.kind === "prefill" && !began) {
        began = true;
        clearTimeout(waiting);
        const promptTokens = request.promptIds.length;
        yield { kind: "begin", promptTokens, cachedTokens: event.cached };
      } else if (event.kind === "round") {
        yield {
          kind: "round",
          tokens: event.ids.length,
          accepted: event.accepted,
          drafted: event.drafts.length,
          logprobs: event.logprobs ?? [],
        };
      } else if (event.kind === "text") {
        yield* reader.push(event.text);
        if (reader.enough) {
          entry.complete = true;
          end();
        }
      } else if (event.kind === "finish") {
        const { result } = event;
        if (result.finishReason === "interrupt" && !reader.enough) {
          if (late) throw waitedTooLong(maxQueueMs ?? 0);
          throw unavailable(signal.aborted ? "the client has left" : "the server is stopping");
        }
        yield* reader.end(result);
        const reasoningTokens = reading.reasoning ? result.reasoningTokens : 0;
        const finish = reader.finish(result);
        yield { kind: "end", ended: { finish, result, reasoningTokens } };
      }
    }
  } finally {
    // Ends the computation where the iteration was left before the answer's end.
    end();
    clearTimeout(waiting);
    signal.removeEventListener("abort", end);
    service.ends.delete(end);
  }
}

interface Reader {
  /** No more calls are wanted. */
  readonly enough: boolean;
  push(text: string): Piece[];
  end(result: GenerateResult): Piece[];
  finish(result: GenerateResult): AnswerOutcome["finish"];
}

function openReader(
  { engine, tools }: Ready,
  promptIds: readonly number[],
  { reasoning, calls }: Reading,
): Reader {
  const thought: ReasoningStream | undefined = reasoning
    ? reasoningStream(engine.info.reasoning, promptIds)
    : undefined;
  const called = calls && callStream(tools.format, calls.tools);
  /** Calls that have begun, and those that are whole. */
  let [begun, whole] = [0, 0];
  let enough = false;

  /** Counts the calls; drops all pieces after the last call that is wanted, however the output is cut into pieces. */
  function counted(pieces: readonly ToolPiece[]): ToolPiece[] {
    const most = calls?.most ?? Infinity;
    const kept: ToolPiece[] = [];
    for (const piece of pieces) {
      if (enough) break;
      kept.push(piece);
      if (piece.kind === "call") begun++;
      if (piece.kind === "called" && !piece.broken) whole++;
      enough = piece.kind === "called" && piece.index + 1 >= most;
    }
    return kept;
  }

  function withCalls(pieces: readonly SeparatedPiece[]): Piece[] {
    return pieces.flatMap((piece): readonly Piece[] => {
      if (enough) return [];
      const hasCalls = called !== undefined && piece.kind === "text";
      return hasCalls ? counted(called.push(piece.text)) : [piece];
    });
  }
  // The beginning of a forced call only sets the reader's state: it is a mark, which makes no text.
  if (calls !== undefined && calls.begun !== "") called?.push(calls.begun);
  return {
    get enough() {
      return enough;
    },
    push: (text) => withCalls(thought?.push(text) ?? [{ kind: "text", text }]),
    end({ finishReason, stop }) {
      const isCut = finishReason !== "stop" || stop !== undefined;
      const last = withCalls(thought?.end() ?? []);
      return called === undefined ? last : [...last, ...counted(called.end(isCut))];
    },
    finish({ finishReason }) {
      if (finishReason === "length" && !enough) return "length";
      // A client would read the arguments of a call that a stop text or the model itself has cut or broken.
      return begun > 0 && whole === begun ? "tool_calls" : "stop";
    },
  };
}
