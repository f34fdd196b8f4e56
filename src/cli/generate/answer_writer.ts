import type { Engine, EngineInfo } from "../../engine/engine.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../engine/schedule/events.ts";
import {
  joinedPieces,
  partReasoning,
  reasoningStream,
  type SeparatedPiece,
  type SeparatedText,
} from "../../text/reasoning.ts";
import type { Io } from "../terminal/io.ts";
import { markdownWriter, plainWriter } from "../terminal/markdown.ts";
import { statusLine } from "../terminal/progress.ts";

/** A result whose text is the answer alone. */
export interface AnswerResult extends GenerateResult {
  /** What the model thought before it; empty where it did not. */
  readonly reasoning: string;
}

/** Shows an output as it comes: the answer on stdout, the reasoning before it dimmed on stderr. */
interface AnswerWriter {
  write(piece: string): void;
  /** Shows what was held back. */
  end(): void;
}

interface WriterOptions {
  readonly io: Io;
  /** `reasoning` is shown on a terminal only: a file or a pipe gets the answer. */
  readonly shown: { reasoning: boolean; answer: boolean };
  /** Wraps the answer's words and colours its Markdown on a terminal, as the reasoning's. */
  readonly layout?: boolean;
}

/** Runs a request and shows its output as it comes. @param options.progress shows the prefill on a terminal. */
export async function streamAnswer(
  engine: Pick<Engine, "info" | "submit">,
  request: GenerateRequest,
  { progress, ...options }: WriterOptions & { readonly progress: boolean },
): Promise<AnswerResult> {
  const status = statusLine(options.io.stderr, { shown: progress });
  const writer = answerWriter(engine.info, request.promptIds, options);
  try {
    const result = await resultOf(engine.submit(request), (event) => {
      if (event.kind === "prefill") status.prefill(event.done, event.total, event.compiling);
      else status.clear();
      if (event.kind === "text") writer.write(event.text);
    });
    return answered(engine.info, result);
  } finally {
    status.clear();
    writer.end();
  }
}

function answerWriter(
  { reasoning }: Pick<EngineInfo, "reasoning">,
  promptIds: readonly number[],
  options: WriterOptions,
): AnswerWriter {
  const stream = reasoningStream(reasoning, promptIds);
  const writer = partedWriter(options);
  const put = (pieces: readonly SeparatedPiece[]) =>
    pieces.forEach((piece) => writer.put(joinedPieces([piece])));
  return {
    write: (piece) => put(stream.push(piece)),
    end() {
      put(stream.end());
      writer.end();
    },
  };
}

/** The same for an output that comes in two parts. */
export interface PartedWriter {
  put(parted: SeparatedText): void;
  end(): void;
}

export function partedWriter({ io, shown, layout = false }: WriterOptions): PartedWriter {
  const dims = shown.reasoning && io.stderr.isTerminal;
  const thought = markdownWriter(io.stderr, { colour: io.colour, dim: true });
  const answer = layout ? markdownWriter(io.stdout, io) : plainWriter(io.stdout);
  /** Reasoning was the last that was written. */
  let thinking = false;

  function put({ reasoning, text }: SeparatedText): void {
    if (dims && reasoning !== "") {
      io.stderr.write(thought.write(reasoning));
      thinking = true;
    }
    if (text === "") return;
    endReasoning("\n\n");
    if (shown.answer) io.stdout.write(answer.write(text));
  }

  function endReasoning(line: string): void {
    if (thinking) io.stderr.write(thought.end() + line);
    thinking = false;
  }

  return {
    put,
    end() {
      endReasoning("\n");
      io.stdout.write(answer.end());
    },
  };
}

/** The result with its text parted. */
export function answered(
  { reasoning }: Pick<EngineInfo, "reasoning">,
  result: GenerateResult,
): AnswerResult {
  return { ...result, ...partReasoning(result.text, reasoning, result.promptIds) };
}
