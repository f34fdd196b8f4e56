import { defined } from "../../defined.ts";
import type { ElasticReport } from "../../engine/schedule/elastic_draft.ts";
import { UsageError } from "../../errors.ts";
import { type GenerateRequest, resultOf } from "../../engine/schedule/events.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { PromptInput } from "../../engine/load/text.ts";
import { answered, type AnswerResult } from "./answer_writer.ts";
import { type BatchEntry, parseBatch } from "./batch_file.ts";
import type { BatchLine } from "./batch_line.ts";
import { constrainedPrompt } from "./constraint.ts";
import { shortError } from "./batch_error.ts";
import { type BatchOutput, openOutput } from "./batch_output.ts";
import type { Engine } from "../../engine/engine.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import { randomSeed, samplingOf } from "../../engine/sampling.ts";
import { type CommandContext, openWithProgress } from "../open/open.ts";
import type { GenerateOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";
import { MAX_TOKENS, samplingChoice } from "../open/sampling.ts";
import { templateArguments } from "../open/template.ts";
import { draftWatch } from "./notes.ts";
import { promptInput, readInput } from "./prompt.ts";
import { requestReport, runReport } from "./repeat.ts";
import { logprobsReport, lossReport } from "./report.ts";
import { warn } from "../terminal/warn.ts";

/**
 * `eyrie generate --batch FILE`: many prompts through the batched engine, one JSON line each in the
 * order they finish. A line that cannot be used is an error of that line alone; the exit code is 1
 * when there was one.
 */
export async function runBatch(
  { file, options, grammar }: {
    readonly file: string;
    readonly options: GenerateOptions;
    /** Grammar of lines without their own. */
    readonly grammar: Grammar | undefined;
  },
  context: CommandContext,
): Promise<number> {
  const { io } = context;
  const text = await unlessAborted(readInput(file, "the lines", io), io.signal);
  if (text === undefined) return INTERRUPTED;
  const lines = parseBatch(text);
  using output = openOutput(options.output, { io, force: options.force, from: file });
  await using engine = await openWithProgress(options, context, {
    constrained: grammar !== undefined || lines.some(hasGrammar),
  });
  if (engine === undefined) return INTERRUPTED;
  const run = openRun(engine, { options, grammar, context, output, total: lines.length });
  await Promise.all(lines.map(run.answer));
  return run.close();
}

function hasGrammar({ request }: BatchEntry): boolean {
  return !(request instanceof UsageError) && request.grammar !== undefined;
}

interface Run {
  /** Answers one line; resolves when its line of output is written. */
  answer(asked: BatchEntry): Promise<void>;
  /** Prints the closing line and returns the exit code. */
  close(): number;
}

function openRun(
  engine: Engine,
  { options, grammar, context: { io, randomSeed: drawSeed = randomSeed }, output, total }: {
    readonly options: GenerateOptions;
    readonly grammar: Grammar | undefined;
    readonly context: CommandContext;
    readonly output: BatchOutput;
    readonly total: number;
  },
): Run {
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const started = performance.now();
  const run = runReport(engine, options);
  let left = total;
  let failed = 0;
  let tokens = 0;
  let cut = 0;
  let interrupted = false;
  const watch = draftWatch();

  function end(line: Record<string, unknown>): void {
    left--;
    status.clear();
    output.write(line);
    status.count(total - left, total, `${failed > 0 ? `${failed} failed, ` : ""}${tokens} tokens`);
  }

  return {
    async answer({ id, line, request: asked }) {
      try {
        if (asked instanceof UsageError) throw asked;
        const { input, request } = await requestOf(engine, {
          line: asked,
          options,
          grammar,
          io,
          drawSeed,
        });
        const result = await resultOf(engine.submit(request));
        tokens += result.outputIds.length;
        if (result.finishReason === "length") cut++;
        const stopped = result.finishReason === "interrupt";
        interrupted ||= stopped;
        // The request was still waiting when it was stopped.
        if (stopped && result.outputIds.length === 0) return;
        const report = resultReport(answered(engine.info, result));
        end({
          id,
          line,
          ...report,
          ...lossReport(engine),
          request: requestReport(input, request),
          run,
        });
        const warning = watch(result.speculative);
        if (warning !== undefined) warn(warning, { io, status, quiet: options.quiet });
      } catch (error) {
        // A line that was not answered before Ctrl+C has no result.
        if (io.signal.aborted && error === io.signal.reason) return;
        if (!(error instanceof UsageError)) throw error;
        failed++;
        end({ id, line, error: shortError(error.message) });
      }
    },
    close() {
      status.clear();
      const seconds = (performance.now() - started) / 1000;
      const { preemptions, waits, elastic } = engine.status.counts;
      const requests = left > 0 ? `${total - left} of ${total} requests` : `${total} requests`;
      const loss = engine.info.acceptThresholds ? " (not lossless)" : "";
      if (!options.quiet) {
        io.stderr.write(
          `${requests}, ${failed} failed, ${
            cut > 0 ? `${cut} cut at their limit, ` : ""
          }${tokens} tokens${loss} in ${seconds.toFixed(2)} s, ` +
            `${(tokens / seconds).toFixed(1)} tokens/s, ${preemptions} preemptions, ` +
            `${waits} steps with requests waiting for pages${elastic ? memoryText(elastic) : ""}\n`,
        );
      }
      return interrupted || io.signal.aborted ? INTERRUPTED : failed > 0 ? 1 : 0;
    },
  };
}

function memoryText({ evictions, reloads }: ElasticReport): string {
  return `, the draft was unloaded ${evictions} times and loaded again ${reloads} times`;
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
): Promise<{ readonly input: PromptInput; readonly request: GenerateRequest }> {
  const { prompt, messages, grammar = common, logprobs = options.logprobs, ...own } = line;
  const written = messages === undefined
    ? promptInput(engine, { prompt: prompt ?? "", options, io })
    : { messages, templateArguments: templateArguments(options) };
  const input = constrainedPrompt(written, grammar);
  const sampling = { ...samplingChoice(options, engine.info), seed: options.seed, ...own.sampling };
  const request = {
    promptIds: await engine.encodePrompt(input, io.signal),
    sampling: samplingOf(sampling, drawSeed),
    maxTokens: own.maxTokens ?? options.maxTokens ?? MAX_TOKENS,
    stop: own.stop ?? options.stop,
    ignoreEos: own.ignoreEos ?? options.ignoreEos,
    ...grammar && { grammar },
    ...defined({ logprobs }),
    signal: io.signal,
  };
  return { input, request };
}

function resultReport(result: AnswerResult): Record<string, unknown> {
  const { text, reasoning, finishReason, promptIds, outputIds, cachedTokens, speculative } = result;
  return {
    text,
    ...reasoning === "" ? {} : { reasoning },
    output_ids: outputIds,
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
