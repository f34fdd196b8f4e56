import type { TextLogprobs } from "../../engine/schedule/events.ts";
import { answer, type Ended, type Piece, type Reading } from "./answer.ts";
import { type Ask, encodePrediction, encodePrompt, type Prompt, requestOf } from "./ask.ts";
import { merged } from "./merge.ts";
import type { Ready, Service } from "../service/service.ts";

/** Several answers to prompts, on their way. */
export interface Choices {
  /** Pieces as they come, with the number of their answer. */
  readonly pieces: AsyncGenerator<readonly [choice: number, piece: Piece], void, void>;
  /** Ends them all. */
  readonly leave: () => void;
}

/**
 * Asks for `count` answers to each prompt: the first prompt's come first. It returns when one of them
 * has begun, so that what is refused is refused before a stream begins.
 *
 * @throws ApiError as `encodePrompt` and `answer`; 429 where too many requests wait.
 */
export async function openChoices(
  service: Service,
  { ready, prompts, ask, reading, count, signal }: {
    readonly ready: Ready;
    readonly prompts: readonly Prompt[];
    readonly ask: Ask;
    readonly reading: Reading;
    readonly count: number;
    readonly signal: AbortSignal;
  },
): Promise<Choices> {
  service.table.checkRoom(prompts.length * count);
  const encoded = await Promise.all(prompts.map((prompt) => encodePrompt(ready, prompt)));
  const prediction = ask.prediction === undefined
    ? undefined
    : await encodePrediction(ready, ask.prediction);
  // Others came while the prompts were encoded.
  service.table.checkRoom(prompts.length * count);
  const left = new AbortController();
  const ends = AbortSignal.any([signal, left.signal]);
  const answers = encoded.flatMap((promptIds) =>
    Array.from({ length: count }, (_, choice) =>
      answer(service, {
        ...{ ready, reading, signal: ends },
        request: requestOf(ask, {
          ...{ promptIds, prediction, ready, options: service.options, choice },
        }),
      }))
  );
  const pieces = merged(answers);
  const leave = () => left.abort();
  try {
    const first = await pieces.next();
    return { pieces: withFirst(first, pieces), leave };
  } catch (error) {
    leave();
    throw error;
  }
}

async function* withFirst<T>(
  first: IteratorResult<T, void>,
  rest: AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  try {
    if (first.done) return;
    yield first.value;
    yield* rest;
  } finally {
    rest.return().catch(() => {});
  }
}

/** A whole answer. */
export interface Gathered {
  text: string;
  reasoning: string;
  readonly calls: { name: string; arguments: string }[];
  readonly logprobs: TextLogprobs[];
  readonly rounds: { tokens: number; accepted: number; drafted: number }[];
  ended: Ended;
}

/** Reads answers to their ends. */
export async function gather({ pieces, leave }: Choices): Promise<Gathered[]> {
  const gathered: Gathered[] = [];
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

function newGathered(): Gathered {
  const ended = undefined as unknown as Ended; // the last piece sets it
  return { text: "", reasoning: "", calls: [], logprobs: [], rounds: [], ended };
}

function add(to: Gathered, piece: Piece): void {
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
