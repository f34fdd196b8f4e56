import { reason, UsageError } from "../../errors.ts";
import type { PromptInput } from "../../engine/load/text.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Io } from "../terminal/io.ts";
import { templateArguments } from "../open/template.ts";
import type { GenerateOptions } from "../options/options.ts";
import { warn } from "../terminal/warn.ts";

/**
 * The prompt: the argument, or standard input where it is absent or `-`. With an argument and
 * something piped in, the piped text comes first, then a blank line, then the argument. A file, where
 * one is named, takes the place of standard input.
 */
export async function readPrompt(
  { argument, file }: { readonly argument: string | undefined; readonly file?: string | undefined },
  io: Io,
): Promise<string> {
  const words = argument === "-" ? undefined : argument;
  const prompt = [await longText(file, words, io), words ?? ""]
    .filter((part) => part !== "").join("\n\n");
  if (prompt.trim() === "") {
    throw new UsageError(
      file === undefined || file === "-"
        ? 'Cannot generate from "": the prompt is empty; give it as an argument or on standard input'
        : `Cannot generate from "${file}": the file has no text`,
    );
  }
  return prompt;
}

/** What comes before the argument. */
async function longText(
  file: string | undefined,
  words: string | undefined,
  io: Io,
): Promise<string> {
  if (file !== undefined) return withoutLastNewline(await readInput(file, "the prompt", io));
  if (words !== undefined && io.stdin.isTerminal) return "";
  return withoutLastNewline(await readInput("-", "the prompt", io));
}

/**
 * Text of a file, or of standard input for `-`; at a terminal a line says that it is being read.
 * @throws UsageError when there is no such file or it is not UTF-8.
 */
export async function readInput(file: string, what: string, io: Io): Promise<string> {
  if (file === "-" && io.stdin.isTerminal) {
    io.stderr.write(`Type ${what}, then Ctrl+D on a line of its own.\n`);
  }
  const place = file === "-" ? "standard input" : file;
  const stdin = () => new Response(io.stdin.bytes as ReadableStream<Uint8Array<ArrayBuffer>>);
  const bytes = file === "-" ? await stdin().bytes() : readBytes(file);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new UsageError(`Cannot read ${what} from "${place}": it is not UTF-8`, { cause });
  }
}

function readBytes(file: string): Uint8Array {
  try {
    return Deno.readFileSync(file);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "no such file" : reason(error);
    throw new UsageError(`Cannot open "${file}": ${why}`, { cause: error });
  }
}

/**
 * What the output is predicted to be, where that was given.
 *
 * @throws UsageError as readInput, and for standard input, which the prompt comes from.
 */
export async function readPrediction(
  { prediction: file }: Pick<GenerateOptions, "prediction">,
  io: Io,
): Promise<string | undefined> {
  if (file === undefined) return undefined;
  if (file === "-") {
    throw new UsageError('Cannot use "--prediction -": standard input is for the prompt');
  }
  return await readInput(file, "the prediction", io);
}

/** The newline that ends a file or an `echo` is not part of the prompt. */
function withoutLastNewline(text: string): string {
  return text.replace(/\r?\n$/, "");
}

/** A prompt as the engine encodes it: a chat of one message, or the plain text. @throws UsageError */
export function promptInput(
  engine: Engine,
  { prompt, options, io }: { prompt: string; options: GenerateOptions; io: Io },
): PromptInput {
  if (options.raw) return { raw: prompt };
  if (!engine.info.hasChatTemplate) {
    if (options.system !== undefined) {
      throw new UsageError(
        `Cannot use "--system" with "${engine.info.name}": the checkpoint has no chat template`,
      );
    }
    const line = "the checkpoint has no chat template; the prompt is used as with --raw";
    warn(line, { io, quiet: options.quiet });
    return { raw: prompt };
  }
  const system: ChatMessage[] = options.system === undefined
    ? []
    : [{ role: "system", content: options.system }];
  const messages: ChatMessage[] = [...system, { role: "user", content: prompt }];
  return { messages, templateArguments: templateArguments(options) };
}
