import { UsageError } from "../../errors.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../engine/schedule/events.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import { type BatchLine, parseBatchLine } from "./batch_line.ts";
import type { Engine } from "../open/engine.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { type CommandContext, openWithProgress, randomSeed, samplingOf } from "../open/open.ts";
import type { GenerateOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { GRAMMAR_FIELDS } from "./constraint.ts";
import { promptInput } from "./prompt.ts";
import { logprobsReport } from "./report.ts";

/**
 * `eyrie generate --batch FILE`: many prompts through the batched engine, one JSON line each on
 * stdout in the order they finish. A line that cannot be used is an error of that line alone; the
 * exit code is 1 when there was one.
 */
export async function runBatch(
  { file, prompt, options, grammar }: {
    readonly file: string;
    readonly prompt: string | undefined;
    readonly options: GenerateOptions;
    /** Of lines that have none of their own. */
    readonly grammar: Grammar | undefined;
  },
  context: CommandContext,
): Promise<number> {
  if (prompt !== undefined) {
    throw new UsageError(`Cannot use "--batch" with a prompt: the prompts come from "${file}"`);
  }
  const lines = readLines(file);
  await using engine = await openWithProgress(options, context, {
    constrained: grammar !== undefined || lines.some(mentionsGrammar),
  });
  if (engine === undefined) return INTERRUPTED;
  const run = openRun(engine, { options, context, grammar, total: lines.length });
  await Promise.all(lines.map((text, i) => run.answer(i + 1, text)));
  return run.close();
}

/** @throws UsageError when the file cannot be read. */
function readLines(file: string): string[] {
  let bytes: Uint8Array;
  try {
    bytes = Deno.readFileSync(file);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "no such file" : String(error);
    throw new UsageError(`Cannot open "${file}": ${why}`, { cause: error });
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes).split("\n")
      .filter((line) => line.trim() !== "");
  } catch (cause) {
    throw new UsageError(`Cannot open "${file}": it is not UTF-8`, { cause });
  }
}

/** Roughly: a prompt that quotes such a field prepares for nothing. */
function mentionsGrammar(line: string): boolean {
  return GRAMMAR_FIELDS.some((field) => line.includes(`"${field}"`));
}

interface Run {
  /** Answers one line; resolves when its line of output is written. */
  answer(line: number, text: string): Promise<void>;
  /** Says what came of it; the exit code. */
  close(): number;
}

function openRun(
  engine: Engine,
  { options, grammar, context: { io, randomSeed: drawSeed = randomSeed }, total }: {
    readonly options: GenerateOptions;
    readonly grammar: Grammar | undefined;
    readonly context: CommandContext;
    readonly total: number;
  },
): Run {
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const started = performance.now();
  let left = total;
  let failed = 0;
  let tokens = 0;
  let interrupted = false;

  function end(line: Record<string, unknown>): void {
    left--;
    status.clear();
    io.stdout.write(`${JSON.stringify(line)}\n`);
    status.count(total - left, total, `${failed > 0 ? `${failed} failed, ` : ""}${tokens} tokens`);
  }

  function fail(id: unknown, error: unknown): void {
    if (!(error instanceof UsageError)) throw error;
    failed++;
    end({ id, error: error.message });
  }

  return {
    async answer(number, text) {
      let id: unknown = number;
      try {
        const line = parseBatchLine(text, number);
        id = line.id;
        const request = await requestOf(engine, { line, options, grammar, io, drawSeed });
        const result = await resultOf(engine.generate(request));
        tokens += result.outputIds.length;
        interrupted ||= result.finishReason === "interrupt";
        end(resultLine(id, result));
      } catch (error) {
        // A line that Ctrl+C came before has no result.
        if (!(io.signal.aborted && error === io.signal.reason)) fail(id, error);
      }
    },
    close() {
      status.clear();
      const seconds = (performance.now() - started) / 1000;
      const { preemptions, waits } = engine.status.counts;
      if (!options.quiet) {
        io.stderr.write(
          `${total} requests, ${failed} failed, ${tokens} tokens in ${seconds.toFixed(2)} s, ` +
            `${(tokens / seconds).toFixed(1)} tokens/s, ${preemptions} preemptions, ` +
            `${waits} steps with requests waiting for pages\n`,
        );
      }
      return interrupted || io.signal.aborted ? INTERRUPTED : failed > 0 ? 1 : 0;
    },
  };
}

async function requestOf(
  engine: Engine,
  { line, options, grammar: common, io, drawSeed }: {
    readonly line: BatchLine;
    readonly options: GenerateOptions;
    readonly grammar: Grammar | undefined;
    readonly io: Io;
    readonly drawSeed: () => number;
  },
): Promise<GenerateRequest> {
  const { prompt, messages, grammar = common, logprobs = options.logprobs, ...own } = line;
  const input = messages === undefined
    ? promptInput(engine, { prompt: prompt ?? "", options, io })
    : { messages };
  return {
    promptIds: await engine.encodePrompt(input, io.signal),
    sampling: samplingOf({ ...options, ...own.sampling }, drawSeed),
    maxTokens: own.maxTokens ?? options.maxTokens,
    stop: own.stop ?? options.stop,
    ignoreEos: own.ignoreEos ?? options.ignoreEos,
    ...grammar && { grammar },
    ...logprobs === undefined ? {} : { logprobs },
    signal: io.signal,
  };
}

function resultLine(id: unknown, result: GenerateResult): Record<string, unknown> {
  const { text, finishReason, promptIds, outputIds, cachedTokens, speculative } = result;
  return {
    id,
    text,
    finish_reason: finishReason,
    ...logprobsReport(result),
    usage: {
      prompt_tokens: promptIds.length,
      completion_tokens: outputIds.length,
      cached_tokens: cachedTokens,
    },
    mean_accept_length: speculative.mean_accept_length,
  };
}
