import type { Io } from "../terminal/io.ts";
import type { LineSource } from "../terminal/lines.ts";
import { warn } from "../terminal/warn.ts";
import type { ChatOptions } from "../options/options.ts";
import type { SeparatedOutput } from "./separated.ts";
import type { ChatModel, Reply } from "./model.ts";
import { type ChatState, withAnswer } from "./state.ts";

/** What stays the same for a whole chat. */
export interface Chat {
  /** Where answers are written; `io.stdout` is the same. */
  readonly answers: SeparatedOutput;
  readonly model: ChatModel;
  readonly options: ChatOptions;
  readonly io: Io;
  readonly lines: LineSource;
  /** Input is a terminal: prompts and notes are shown. */
  readonly interactive: boolean;
  /** A line about the chat, on stderr. */
  readonly say: (text: string) => void;
}

/** Answers the newest message of `asked`; `before` is the state to go back to if nothing was answered. */
export async function answer(
  chat: Chat,
  { before, asked }: { before: ChatState; asked: ChatState },
): Promise<ChatState> {
  const { model, io, interactive, say } = chat;
  chat.answers.nextAnswer();
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, io.signal]);
  const reply = await chat.lines.answering(
    () => stop.abort(),
    () => model.answer(asked, { io, interactive, say, signal }),
  );
  if (reply === undefined) return before;
  const { state, stopped, nothing, cut, warning, tokens } = reply;
  if (!nothing) endLine(chat, reply);
  const note = stopped ? interactive ? "Stopped." : undefined : cut;
  if (note !== undefined) say(note);
  if (warning !== undefined) warn(warning, { io, quiet: chat.options.quiet });
  if (state.settings.stats && !nothing) say(reply.stats);
  if (stopped && reply.text === "") return before;
  const { text, reasoning } = reply;
  return withAnswer(state, { text, reasoning, whole: !stopped }, tokens);
}

/** Ends the answer's line; a person also gets a blank line before the next prompt. */
function endLine({ io, interactive }: Chat, { text }: Reply): void {
  if (!text.endsWith("\n")) io.stdout.write("\n");
  if (interactive) io.stderr.write("\n");
}
