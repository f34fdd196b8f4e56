import { defined } from "../../defined.ts";
import type { GenerateRequest } from "../../engine/schedule/events.ts";
import { FALLBACK, type SamplingChoice, samplingOf } from "../../engine/sampling.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import { type AnswerResult, streamAnswer } from "../generate/answer_writer.ts";
import { constrainedPrompt } from "../generate/constraint.ts";
import { cutNote, draftWatch } from "../generate/notes.ts";
import { statsLine, thresholdsText } from "../generate/report.ts";
import type { Engine } from "../../engine/engine.ts";
import { templateArguments } from "../open/template.ts";
import type { ChatOptions } from "../options/options.ts";
import type { ChatModel, Listener, Reply } from "./model.ts";
import { type Settings, settingsOf } from "./settings.ts";
import { asksFor, type ChatState, fitContext } from "./state.ts";

interface Local {
  readonly engine: Engine;
  readonly options: ChatOptions;
  readonly drawSeed: () => number;
  /** Called with every answer; warns once if the draft does not help. */
  readonly watchDraft: ReturnType<typeof draftWatch>;
}

/** A chat with the engine of this process. */
export function engineModel(
  engine: Engine,
  { options, drawSeed }: Pick<Local, "options" | "drawSeed">,
): ChatModel {
  const local = { engine, options, drawSeed, watchDraft: draftWatch() };
  return {
    name: engine.info.name,
    drafts: engine.info.draftName !== undefined,
    thinks: engine.info.reasoning.switchable,
    greeting: greeting(engine),
    settings: settingsOf(options, engine.info),
    facts: ({ tokens }) => [
      ["model", engine.info.name],
      ["draft model", engine.info.draftName ?? "none"],
      ["device", engine.info.device.adapter],
      ["policy", engine.status.speculation.policy],
      ["context", `${tokens} of ${engine.info.contextLength} tokens after the last answer`],
    ],
    answer: (asked, to) => answer(local, asked, to),
  };
}

function greeting(engine: Engine): string {
  const { draftName, device, algorithm, acceptThresholds: of } = engine.info;
  const without = algorithm === "NONE" ? "no draft" : `drafts by ${algorithm}`;
  const draft = draftName === undefined ? without : `${draftName} (${algorithm})`;
  const loss = of ? ` Relaxed acceptance (${thresholdsText(of)}): not lossless.` : "";
  return `${engine.info.name}, ${draft}, ${device.adapter}.${loss} /help lists the commands.`;
}

async function answer(
  local: Local,
  asked: ChatState,
  to: Listener,
): Promise<Reply | undefined> {
  const streamed = await fitAndStream(local, asked, to);
  if (streamed === undefined) return undefined;
  const { state, request, result } = streamed;
  const { engine } = local;
  const { temperature, seed } = request.sampling;
  const stopped = result.finishReason === "interrupt";
  return {
    state,
    stopped,
    text: result.text,
    reasoning: result.reasoning,
    nothing: stopped && result.outputIds.length === 0,
    tokens: request.promptIds.length + result.outputIds.length,
    cut: cutText(engine, result),
    warning: local.watchDraft(result.speculative),
    stats: statsLine({ engine, result, seed: temperature > 0 ? seed : undefined }),
  };
}

/** Why the answer was cut, and how to go on. */
function cutText(engine: Engine, result: AnswerResult): string | undefined {
  const note = cutNote(engine.info, result, {
    tokens: "/set max-tokens",
    context: "--context-length at the start",
  });
  if (note === undefined) return undefined;
  const full = result.promptIds.length + result.outputIds.length >= engine.info.contextLength;
  const how = full
    ? "The next message drops the oldest ones; /drop, /undo and /clear make room now."
    : "/regen then answers again.";
  return `${note} ${how}`;
}

/** The answer as it comes; undefined if Ctrl+C was pressed before there was a prompt. */
async function fitAndStream(local: Local, asked: ChatState, to: Listener) {
  const { engine, options: { templateArg, quiet } } = local;
  const { io, signal, say, interactive } = to;
  const args = templateArguments({ think: asked.settings.think, templateArg });
  const encode = (messages: readonly ChatMessage[]) =>
    engine.encodePrompt(
      constrainedPrompt({ messages, templateArguments: args }, asked.settings.format?.grammar),
      signal,
    );
  try {
    const { contextLength, maxContextLength } = engine.info;
    const { state, promptIds, dropped } = await fitContext(asked, {
      encode,
      contextLength,
      maxContextLength,
    });
    if (dropped > 0) say(droppedText(dropped, contextLength));
    const same = asked.attempt > 0 && asked.answeredAs === asksFor(asked);
    if (same && asked.settings.temperature === 0) {
      say("At temperature 0 the answer is the same again.");
    }
    const request = requestOf(local, state, { promptIds, signal });
    const result = await streamAnswer(engine, request, {
      io,
      shown: { reasoning: !quiet, answer: true },
      layout: true,
      progress: interactive && !quiet,
    });
    return { state, request, result };
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    if (interactive) say("Stopped.");
    return undefined;
  }
}

function requestOf(
  { engine, options, drawSeed }: Local,
  { settings, attempt }: ChatState,
  rest: Pick<GenerateRequest, "promptIds"> & { signal: AbortSignal },
): GenerateRequest {
  const { seed } = settings;
  const numSteps = settings.draft ? settings.numSteps : 0;
  // A fixed seed must still let /regen find another answer.
  const moved = seed === undefined ? undefined : (seed + attempt) >>> 0;
  return {
    ...rest,
    sampling: samplingOf({ ...sampled(settings), seed: moved }, drawSeed),
    maxTokens: settings.maxTokens ?? engine.info.contextLength - rest.promptIds.length,
    stop: settings.stop,
    ignoreEos: options.ignoreEos,
    ...defined({ numSteps, grammar: settings.format?.grammar }),
  };
}

/** The settings of sampling, each with a value. */
function sampled(settings: Settings): SamplingChoice {
  const keys = Object.keys(FALLBACK) as (keyof SamplingChoice)[];
  const entries = keys.map((key) => [key, settings[key] ?? FALLBACK[key]]);
  return Object.fromEntries(entries) as SamplingChoice;
}

function droppedText(dropped: number, contextLength: number): string {
  const exchanges = dropped === 1 ? "the oldest exchange" : `the ${dropped} oldest exchanges`;
  return `The context (${contextLength} tokens) is full: dropped ${exchanges}.`;
}
