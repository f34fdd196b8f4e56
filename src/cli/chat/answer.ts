import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../engine/schedule/events.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import type { Engine } from "../open/engine.ts";
import type { Io } from "../terminal/io.ts";
import { samplingOf } from "../open/open.ts";
import type { ChatOptions } from "../options/options.ts";
import { laidOut } from "../terminal/markdown.ts";
import { statusLine } from "../terminal/progress.ts";
import { statsLine } from "../generate/report.ts";
import type { LineSource } from "../terminal/lines.ts";
import { type ChatState, fitContext, withAnswer } from "./state.ts";

/** What stays the same for a whole chat. */
export interface Chat {
  readonly engine: Engine;
  readonly options: ChatOptions;
  readonly io: Io;
  readonly lines: LineSource;
  /** Input is a terminal: prompts and notes are shown. */
  readonly interactive: boolean;
  readonly drawSeed: () => number;
  /** A line about the chat, on stderr. */
  readonly say: (text: string) => void;
}

/** Answers the newest message of `asked`; `before` is the state to go back to if nothing came. */
export async function answer(
  chat: Chat,
  { before, asked }: { before: ChatState; asked: ChatState },
): Promise<ChatState> {
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, chat.io.signal]);
  const answered = await chat.lines.answering(
    () => stop.abort(),
    () => fitAndStream(chat, asked, signal),
  );
  if (answered === undefined) return before;
  const { state, request, result } = answered;
  endLine(chat, result);
  const note = endNote(chat, state, result);
  if (note !== undefined) chat.say(note);
  if (state.settings.stats) {
    const { temperature, seed } = request.sampling;
    const { engine } = chat;
    chat.say(statsLine({ engine, result, seed: temperature > 0 ? seed : undefined }));
  }
  if (result.finishReason === "interrupt" && result.text === "") return before;
  return withAnswer(state, result.text, request.promptIds.length + result.outputIds.length);
}

/** The answer as it comes; undefined where Ctrl+C came before there was a prompt. */
async function fitAndStream(chat: Chat, asked: ChatState, signal: AbortSignal) {
  const { engine } = chat;
  const encode = (messages: readonly ChatMessage[]) => engine.encodePrompt({ messages }, signal);
  try {
    const { contextLength } = engine;
    const { state, promptIds, dropped } = await fitContext(asked, { encode, contextLength });
    if (dropped > 0) chat.say(droppedText(dropped, contextLength));
    if (asked.attempt > 0 && asked.settings.temperature === 0) {
      chat.say("At temperature 0 the answer is the same again.");
    }
    const request = requestOf(chat, state, { promptIds, signal });
    return { state, request, result: await stream(chat, request) };
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    if (chat.interactive) chat.say("Stopped.");
    return undefined;
  }
}

function requestOf(
  chat: Chat,
  { settings, attempt }: ChatState,
  rest: Pick<GenerateRequest, "promptIds"> & { signal: AbortSignal },
): GenerateRequest {
  const { seed } = settings;
  const numSteps = settings.draft ? settings.numSteps : 0;
  // A fixed seed must still let /regen find another answer.
  const moved = seed === undefined ? undefined : (seed + attempt) >>> 0;
  return {
    ...rest,
    sampling: samplingOf({ ...settings, seed: moved }, chat.drawSeed),
    maxTokens: settings.maxTokens,
    stop: chat.options.stop,
    ignoreEos: chat.options.ignoreEos,
    ...numSteps === undefined ? {} : { numSteps },
  };
}

async function stream(chat: Chat, request: GenerateRequest): Promise<GenerateResult> {
  const { engine, io, options } = chat;
  const status = statusLine(io.stderr, { shown: chat.interactive && !options.quiet });
  const shown = laidOut(io.stdout, io);
  try {
    return await resultOf(engine.generate(request), (event) => {
      if (event.kind === "prefill") status.prefill(event.done, event.total);
      else status.clear();
      if (event.kind === "text") io.stdout.write(shown.write(event.text));
    });
  } finally {
    status.clear();
    io.stdout.write(shown.end());
  }
}

/** Ends the answer's line; a person also gets a blank line before the next prompt. */
function endLine({ io, interactive }: Chat, { text }: GenerateResult): void {
  if (!text.endsWith("\n")) io.stdout.write("\n");
  if (interactive) io.stderr.write("\n");
}

function endNote(
  { engine, interactive }: Chat,
  { settings }: ChatState,
  { finishReason, promptIds, outputIds }: GenerateResult,
): string | undefined {
  if (finishReason === "interrupt") return interactive ? "Stopped." : undefined;
  if (finishReason !== "length") return undefined;
  if (promptIds.length + outputIds.length >= engine.contextLength) {
    return `The context (${engine.contextLength} tokens) is full: the answer was cut.`;
  }
  return `The answer was cut at ${settings.maxTokens} tokens; /set max-tokens allows more.`;
}

function droppedText(dropped: number, contextLength: number): string {
  const exchanges = dropped === 1 ? "the oldest exchange" : `the ${dropped} oldest exchanges`;
  return `The context (${contextLength} tokens) is full: dropped ${exchanges}.`;
}
