import { UsageError } from "../errors.ts";
import type { GenerateRequest, GenerateResult } from "../engine/events.ts";
import { type BatchLine, parseBatchLine } from "./batch_line.ts";
import type { Engine } from "./engine.ts";
import { promptInput } from "./generate.ts";
import type { Io } from "./io.ts";
import {
  INTERRUPTED,
  openWithProgress,
  randomSeed,
  samplingOf,
  type Surroundings,
} from "./open.ts";
import type { GenerateOptions } from "./options.ts";
import { statusLine } from "./progress.ts";

/**
 * `eyrie generate --batch FILE`: many prompts through the batched engine, one JSON line each on
 * stdout in the order they finish. A line that cannot be used is an error of that line alone; the
 * exit code is 1 when there was one.
 */
export async function runBatch(
  { file, prompt, options }: {
    readonly file: string;
    readonly prompt: string | undefined;
    readonly options: GenerateOptions;
  },
  surroundings: Surroundings,
): Promise<number> {
  if (prompt !== undefined) {
    throw new UsageError(`Cannot use "--batch" with a prompt: the prompts come from "${file}"`);
  }
  const lines = readLines(file);
  using engine = await openWithProgress(options, surroundings);
  if (engine === undefined) return INTERRUPTED;
  const run = openRun(engine, { options, surroundings, total: lines.length });
  for (const [i, text] of lines.entries()) run.submit(i + 1, text);
  while (run.left() > 0 && await engine.scheduler.step());
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

interface Run {
  submit(line: number, text: string): void;
  left(): number;
  /** Says what came of it; the exit code. */
  close(): number;
}

function openRun(
  engine: Engine,
  { options, surroundings: { io, randomSeed: drawSeed = randomSeed }, total }: {
    readonly options: GenerateOptions;
    readonly surroundings: Surroundings;
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
    left: () => left,
    submit(number, text) {
      let id: unknown = number;
      try {
        const line = parseBatchLine(text, number);
        id = line.id;
        engine.scheduler.submit(requestOf(engine, { line, options, io, drawSeed }), {
          onEvent: (event) => {
            if (event.kind === "error") fail(id, event.error);
            if (event.kind !== "finish") return;
            tokens += event.result.outputIds.length;
            interrupted ||= event.result.finishReason === "interrupt";
            end(resultLine(id, event.result));
          },
        });
      } catch (error) {
        fail(id, error);
      }
    },
    close() {
      status.clear();
      const seconds = (performance.now() - started) / 1000;
      const { putBacks, waits } = engine.scheduler.counts;
      if (!options.quiet) {
        io.stderr.write(
          `${total} requests, ${failed} failed, ${tokens} tokens in ${seconds.toFixed(2)} s, ` +
            `${(tokens / seconds).toFixed(1)} tokens/s, ${putBacks} put back, ` +
            `${waits} steps with requests waiting for pages\n`,
        );
      }
      return interrupted || io.signal.aborted ? INTERRUPTED : failed > 0 ? 1 : 0;
    },
  };
}

function requestOf(
  engine: Engine,
  { line, options, io, drawSeed }: {
    readonly line: BatchLine;
    readonly options: GenerateOptions;
    readonly io: Io;
    readonly drawSeed: () => number;
  },
): GenerateRequest {
  const { prompt, messages, ...own } = line;
  const input = messages === undefined
    ? promptInput(engine, { prompt: prompt ?? "", options, io })
    : { messages };
  return {
    promptIds: engine.encodePrompt(input),
    sampling: samplingOf({ ...options, ...own.sampling }, drawSeed),
    maxTokens: own.maxTokens ?? options.maxTokens,
    stop: own.stop ?? options.stop,
    ignoreEos: own.ignoreEos ?? options.ignoreEos,
    signal: io.signal,
  };
}

function resultLine(id: unknown, result: GenerateResult): Record<string, unknown> {
  const { text, finishReason, promptIds, outputIds, speculative } = result;
  return {
    id,
    text,
    finish_reason: finishReason,
    usage: { prompt_tokens: promptIds.length, completion_tokens: outputIds.length },
    mean_accept_length: speculative.mean_accept_length,
  };
}
