import { UsageError } from "../../errors.ts";
import { type Io, unlessAborted } from "./io.ts";

/** Input of the person at the terminal. */
export type Line =
  | { readonly kind: "line"; readonly text: string }
  /** Ctrl+C at the prompt; `empty` when nothing was typed. */
  | { readonly kind: "interrupt"; readonly empty: boolean }
  /** Ctrl+D or the end of the input. */
  | { readonly kind: "end" };

/** Where a chat's lines come from. */
export interface LineSource extends Disposable {
  next(prompt: string): Promise<Line>;
  /** Runs an answer; Ctrl+C meanwhile calls `stop`, keys wait for the next prompt. */
  answering<T>(stop: () => void, answer: () => Promise<T>): Promise<T>;
  /** What was typed, newest first. */
  readonly history: readonly string[];
  /** Puts a message or command into the history. */
  remember(text: string): void;
}

/** Lines of a pipe or a file: no prompt, no decoration. */
export function pipedLines(io: Io): LineSource {
  const lines = splitLines(io.stdin.bytes);
  return {
    async next() {
      const read = await unlessAborted(lines.next(), io.signal);
      return read === undefined || read.done ? { kind: "end" } : { kind: "line", text: read.value };
    },
    answering: (_stop, answer) => answer(),
    history: [],
    remember() {},
    [Symbol.dispose]() {},
  };
}

async function* splitLines(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (chunk?: Uint8Array) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (cause) {
      throw new UsageError('Cannot read a line from "standard input": it is not valid UTF-8', {
        cause,
      });
    }
  };
  let rest = "";
  for await (const chunk of bytes) {
    const lines = (rest + decode(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.replace(/\r$/, "");
  }
  rest += decode();
  if (rest !== "") yield rest;
}
