import { type GenerateRequest, resultOf } from "../../engine/schedule/events.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import type { SpeculativeStats } from "../../speculate/stats.ts";
import type { Engine } from "../open/engine.ts";
import type { Io } from "../terminal/io.ts";
import { samplingOf } from "../../engine/sampling.ts";
import { templateArguments } from "../open/template.ts";
import type { ChatOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { type Answered, answered, answerWriter } from "../generate/answer_writer.ts";
import { cutNote } from "../generate/notes.ts";
import { statsLine } from "../generate/report.ts";
import type { LineSource } from "../terminal/lines.ts";
import { warn } from "../terminal/warn.ts";
import { asksFor, type ChatState, fitContext, withAnswer } from "./state.ts";

/** What stays the same for a whole chat. */
export interface Chat {
  readonly engine: Engine;
  readonly options: ChatOptions;
  readonly io: Io;
  readonly lines: LineSource;
  /** Input is a terminal: prompts and notes are shown. */
  readonly interactive: boolean;
  readonly drawSeed: () => number;
  /** Told of every answer; says once that the draft is of no use. */
  readonly watchDraft: (stats: SpeculativeStats) => string | undefined;
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
  const streamed = await chat.lines.answering(
    () => stop.abort(),
    () => fitAndStream(chat, asked, signal),
  );
  if (streamed === undefined) return before;
  const { state, request, result } = streamed;
  const stopped = result.finishReason === "interrupt";
  const nothing = stopped && result.outputIds.length === 0;
  if (!nothing) endLine(chat, result);
  const note = endNote(chat, result);
  if (note !== undefined) chat.say(note);
  const warning = chat.watchDraft(result.speculative);
  if (warning !== undefined) warn(warning, chat);
  if (state.settings.stats && !nothing) {
    const { temperature, seed } = request.sampling;
    const { engine } = chat;
    chat.say(statsLine({ engine, result, seed: temperature > 0 ? seed : undefined }));
  }
  if (stopped && result.text === "") return before;
  const tokens = request.promptIds.length + result.outputIds.length;
  return withAnswer(state, { ...result, whole: !stopped }, tokens);
}

/** The answer as it comes; undefined where Ctrl+C came before there was a prompt. */
async function fitAndStream(chat: Chat, asked: ChatState, signal: AbortSignal) {
  const { engine } = chat;
  const { templateArg } = chat.options;
  const args = templateArguments({ think: asked.settings.think, templateArg });
  const encode = (messages: readonly ChatMessage[]) =>
    engine.encodePrompt({ messages, templateArguments: args }, signal);
  try {
    const { contextLength } = engine;
    const { state, promptIds, dropped } = await fitContext(asked, { encode, contextLength });
    if (dropped > 0) chat.say(droppedText(dropped, contextLength));
    const same = asked.attempt > 0 && asked.answeredAs === asksFor(asked);
    if (same && asked.settings.temperature === 0) {
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
    maxTokens: settings.maxTokens ?? chat.engine.contextLength - rest.promptIds.length,
    stop: settings.stop,
    ignoreEos: chat.options.ignoreEos,
    ...numSteps === undefined ? {} : { numSteps },
  };
}

async function stream(chat: Chat, request: GenerateRequest): Promise<Answered> {
  const { engine, io, options: { quiet } } = chat;
  const status = statusLine(io.stderr, { shown: chat.interactive && !quiet });
  const shown = { reasoning: !quiet, answer: true };
  const writer = answerWriter(engine, request.promptIds, { io, shown, layout: true });
  try {
    const result = await resultOf(engine.generate(request), (event) => {
      if (event.kind === "prefill") status.prefill(event.done, event.total);
      else status.clear();
      if (event.kind === "text") writer.write(event.text);
    });
    return answered(engine, result);
  } finally {
    status.clear();
    writer.end();
  }
}

/** Ends the answer's line; a person also gets a blank line before the next prompt. */
function endLine({ io, interactive }: Chat, { text }: Answered): void {
  if (!text.endsWith("\n")) io.stdout.write("\n");
  if (interactive) io.stderr.write("\n");
}

function endNote({ engine, interactive }: Chat, result: Answered): string | undefined {
  if (result.finishReason === "interrupt") return interactive ? "Stopped." : undefined;
  return cutNote(engine, result, { tokens: "/set max-tokens" });
}

function droppedText(dropped: number, contextLength: number): string {
  const exchanges = dropped === 1 ? "the oldest exchange" : `the ${dropped} oldest exchanges`;
  return `The context (${contextLength} tokens) is full: dropped ${exchanges}.`;
}
