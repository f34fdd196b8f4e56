import { defined } from "../../defined.ts";
import { UsageError } from "../../errors.ts";
import type { GenerateRequest } from "../../engine/schedule/events.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { PromptInput } from "../../engine/load/text.ts";
import { type AnswerResult, streamAnswer } from "./answer_writer.ts";
import { runBatch } from "./batch.ts";
import { cutAnswerNote, draftWatch } from "./notes.ts";
import type { Engine } from "../../engine/engine.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import { randomSeed, samplingOf } from "../../engine/sampling.ts";
import { type CommandContext, openWithProgress } from "../open/open.ts";
import { MAX_TOKENS, samplingChoice } from "../open/sampling.ts";
import { templateArguments } from "../open/template.ts";
import type { GenerateOptions } from "../options/options.ts";
import { promptInput, readPrediction, readPrompt } from "./prompt.ts";
import { constrainedPrompt, grammarOf } from "./constraint.ts";
import { requestReport, runReport } from "./repeat.ts";
import { jsonReport, statsLine, statsTable } from "./report.ts";
import { warn } from "../terminal/warn.ts";
import { wrapNote } from "../terminal/wrap.ts";

/** Nothing would be found in a prefix cache, whose states of fixed size take memory. */
const ONE_REQUEST = { maxBatch: 1, noPrefixCache: true } as const;

/** `eyrie generate`: one prompt in, its continuation on stdout. Returns the exit code. */
export async function runGenerate(
  { prompt: argument, options }: { prompt: string | undefined; options: GenerateOptions },
  context: CommandContext,
): Promise<number> {
  const { io } = context;
  // Mistakes are reported before anything is opened.
  templateArguments(options);
  const grammar = grammarOf(options);
  if (grammar) await (await import("../../grammar/grammars.ts")).checkGrammar(grammar);
  if (options.batch !== undefined) {
    return await runBatch({ file: options.batch, options, grammar }, context);
  }
  const predicted = await readPrediction(options, io);
  const source = { argument, file: options.promptFile };
  const prompt = await unlessAborted(readPrompt(source, io), io.signal);
  if (prompt === undefined) return INTERRUPTED;
  await using engine = await openWithProgress({ ...options, ...ONE_REQUEST }, context, {
    constrained: grammar !== undefined,
    predictions: predicted !== undefined,
  });
  if (engine === undefined) return INTERRUPTED;
  const input = constrainedPrompt(promptInput(engine, { prompt, options, io }), grammar);
  const request = requestOf(engine, options, {
    promptIds: await encode(engine, { prompt, input, io }),
    grammar,
    prediction: predicted === undefined
      ? undefined
      : await engine.encodePrompt({ raw: predicted, addSpecialTokens: false }, io.signal),
    drawSeed: context.randomSeed ?? randomSeed,
    signal: io.signal,
  });
  const { quiet, json } = options;
  const shown = { reasoning: !quiet && !json, answer: !json };
  const result = await streamAnswer(engine, request, { io, shown, progress: !quiet });
  report({ engine, input, request, result, options, io });
  return result.finishReason === "interrupt" ? INTERRUPTED : 0;
}

/** What follows the text. */
function report(
  { engine, input, request, result, options, io }: {
    readonly engine: Engine;
    readonly input: PromptInput;
    readonly request: GenerateRequest;
    readonly result: AnswerResult;
    readonly options: GenerateOptions;
    readonly io: Io;
  },
): void {
  const { stats, quiet, json } = options;
  const nothing = result.finishReason === "interrupt" && result.outputIds.length === 0;
  if (json) {
    const repeat = { request: requestReport(input, request), run: runReport(engine, options) };
    io.stdout.write(`${JSON.stringify({ ...jsonReport({ engine, result }), ...repeat })}\n`);
  } else if (!nothing && !result.text.endsWith("\n")) io.stdout.write("\n");
  const warning = draftWatch()(result.speculative);
  if (warning !== undefined) warn(warning, { io, quiet });
  if (nothing) return;
  const seed = request.sampling.temperature > 0 ? request.sampling.seed : undefined;
  const width = io.stderr.isTerminal ? io.stderr.columns() : Infinity;
  const say = (note: string) => io.stderr.write(`${wrapNote(note, width)}\n`);
  if (stats) say(statsTable({ engine, result, seed }));
  else if (!quiet) say(statsLine({ engine, result, seed }));
  const { maxTokens } = options;
  const note = cutAnswerNote(engine.info, result, { maxTokens, grammar: request.grammar });
  if (note !== undefined && !quiet) say(note);
}

async function encode(
  engine: Engine,
  { prompt, input, io }: { prompt: string; input: PromptInput; io: Io },
): Promise<readonly number[]> {
  const ids = await engine.encodePrompt(input, io.signal);
  const { contextLength, maxContextLength } = engine.info;
  if (ids.length >= contextLength) {
    const allows = contextLength < maxContextLength ? "; --context-length allows more" : "";
    throw new UsageError(
      `Cannot generate from "${start(prompt)}": the prompt has ${ids.length} tokens, ` +
        `the context holds ${contextLength}${allows}`,
    );
  }
  return ids;
}

function requestOf(
  engine: Engine,
  options: GenerateOptions,
  rest: {
    promptIds: readonly number[];
    grammar: Grammar | undefined;
    prediction: readonly number[] | undefined;
    drawSeed: () => number;
    signal: AbortSignal;
  },
): GenerateRequest {
  const { maxTokens = MAX_TOKENS, stop, ignoreEos, logprobs, seed } = options;
  return {
    promptIds: rest.promptIds,
    sampling: samplingOf({ ...samplingChoice(options, engine.info), seed }, rest.drawSeed),
    maxTokens,
    stop,
    ignoreEos,
    ...rest.grammar && { grammar: rest.grammar },
    ...rest.prediction && { prediction: rest.prediction },
    ...defined({ logprobs }),
    signal: rest.signal,
  };
}

function start(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 40 ? `${line.slice(0, 40)}...` : line;
}
