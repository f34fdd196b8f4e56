import { UsageError } from "../../errors.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../engine/schedule/events.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import { runBatch } from "./batch.ts";
import type { Engine } from "../open/engine.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import { type CommandContext, openWithProgress, randomSeed, samplingOf } from "../open/open.ts";
import type { GenerateOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { grammarOf } from "./constraint.ts";
import { promptInput, readPrompt } from "./prompt.ts";
import { jsonReport, statsLine, statsTable } from "./report.ts";

/** `eyrie generate`: one prompt in, its continuation on stdout. Returns the exit code. */
export async function runGenerate(
  { prompt: argument, options }: { prompt: string | undefined; options: GenerateOptions },
  context: CommandContext,
): Promise<number> {
  const { io } = context;
  const grammar = grammarOf(options);
  // A mistake is told before a model is loaded.
  if (grammar) await (await import("../../grammar/grammars.ts")).checkGrammar(grammar);
  if (options.batch !== undefined) {
    return await runBatch({ file: options.batch, prompt: argument, options, grammar }, context);
  }
  const prompt = await unlessAborted(readPrompt(argument, io), io.signal);
  if (prompt === undefined) return INTERRUPTED;
  await using engine = await openWithProgress({ ...options, maxBatch: 1 }, context, {
    constrained: grammar !== undefined,
  });
  if (engine === undefined) return INTERRUPTED;
  const request = requestOf(options, {
    promptIds: await encode(engine, { prompt, options, io }),
    grammar,
    drawSeed: context.randomSeed ?? randomSeed,
    signal: io.signal,
  });
  const result = await stream(engine, { request, options, io });
  const seed = request.sampling.temperature > 0 ? request.sampling.seed : undefined;
  if (options.json) io.stdout.write(`${JSON.stringify(jsonReport({ engine, result }))}\n`);
  else if (!result.text.endsWith("\n")) io.stdout.write("\n");
  if (options.stats) io.stderr.write(`${statsTable({ engine, result, seed })}\n`);
  else if (!options.quiet) io.stderr.write(`${statsLine({ engine, result, seed })}\n`);
  return result.finishReason === "interrupt" ? INTERRUPTED : 0;
}

async function encode(
  engine: Engine,
  { prompt, options, io }: { prompt: string; options: GenerateOptions; io: Io },
): Promise<readonly number[]> {
  const ids = await engine.encodePrompt(promptInput(engine, { prompt, options, io }), io.signal);
  if (ids.length >= engine.contextLength) {
    throw new UsageError(
      `Cannot generate from "${start(prompt)}": the prompt has ${ids.length} tokens, ` +
        `the context holds ${engine.contextLength}`,
    );
  }
  return ids;
}

function requestOf(
  options: GenerateOptions,
  rest: {
    promptIds: readonly number[];
    grammar: Grammar | undefined;
    drawSeed: () => number;
    signal: AbortSignal;
  },
): GenerateRequest {
  const { maxTokens, stop, ignoreEos, logprobs } = options;
  return {
    promptIds: rest.promptIds,
    sampling: samplingOf(options, rest.drawSeed),
    maxTokens,
    stop,
    ignoreEos,
    ...rest.grammar && { grammar: rest.grammar },
    ...logprobs === undefined ? {} : { logprobs },
    signal: rest.signal,
  };
}

/** Passes text on as it is accepted, unless it goes into the JSON object. */
async function stream(
  engine: Engine,
  { request, options, io }: { request: GenerateRequest; options: GenerateOptions; io: Io },
): Promise<GenerateResult> {
  const status = statusLine(io.stderr, { shown: !options.quiet });
  try {
    return await resultOf(engine.generate(request), (event) => {
      if (event.kind === "prefill") status.prefill(event.done, event.total);
      else status.clear();
      if (event.kind === "text" && !options.json) io.stdout.write(event.text);
    });
  } finally {
    status.clear();
  }
}

function start(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 40 ? `${line.slice(0, 40)}...` : line;
}
