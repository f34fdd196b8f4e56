import { UsageError } from "../../errors.ts";
import type { PromptInput } from "../../engine/load/text.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import type { Engine } from "../open/engine.ts";
import type { Io } from "../terminal/io.ts";
import { templateArguments } from "../open/template.ts";
import type { GenerateOptions } from "../options/options.ts";
import { warn } from "../terminal/warn.ts";

/**
 * The prompt: the argument, or standard input where it is absent or `-`. With an argument and
 * something piped in, the piped text comes first, then a blank line, then the argument.
 */
export async function readPrompt(argument: string | undefined, io: Io): Promise<string> {
  const onlyInput = argument === undefined || argument === "-";
  const reads = onlyInput || !io.stdin.isTerminal;
  if (onlyInput && io.stdin.isTerminal) {
    io.stderr.write("Type the prompt, then Ctrl+D on a line of its own.\n");
  }
  const piped = reads ? withoutLastNewline(await readText(io.stdin.bytes)) : "";
  const parts = onlyInput ? [piped] : [piped, argument];
  const prompt = parts.filter((part) => part !== "").join("\n\n");
  if (prompt.trim() === "") {
    throw new UsageError(
      'Cannot generate from "": the prompt is empty; give it as an argument or on standard input',
    );
  }
  return prompt;
}

async function readText(bytes: ReadableStream<Uint8Array>): Promise<string> {
  const all = await new Response(bytes as ReadableStream<Uint8Array<ArrayBuffer>>).bytes();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(all);
  } catch (cause) {
    throw new UsageError('Cannot read the prompt from "standard input": it is not valid UTF-8', {
      cause,
    });
  }
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
  if (!engine.hasChatTemplate) {
    if (options.system !== undefined) {
      throw new UsageError(
        `Cannot use "--system" with "${engine.name}": the checkpoint has no chat template`,
      );
    }
    warn("the checkpoint has no chat template; the prompt is used as with --raw", { io });
    return { raw: prompt };
  }
  const system: ChatMessage[] = options.system === undefined
    ? []
    : [{ role: "system", content: options.system }];
  const messages: ChatMessage[] = [...system, { role: "user", content: prompt }];
  return { messages, templateArguments: templateArguments(options) };
}
