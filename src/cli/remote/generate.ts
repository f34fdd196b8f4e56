import type { RemotePrompt } from "../../remote/complete.ts";
import type { Json } from "../../remote/json.ts";
import { openServer, type Server } from "../../remote/server.ts";
import { type PartedWriter, partedWriter } from "../generate/answer_writer.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import { grammarOf } from "../generate/constraint.ts";
import { cutAtText, incompleteText } from "../generate/notes.ts";
import { readPrompt } from "../generate/prompt.ts";
import { MAX_TOKENS } from "../open/sampling.ts";
import type { GenerateOptions } from "../options/options.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import { answerRemotely, type RemoteAnswer } from "./answer.ts";
import { remoteJson, remoteStatsLine, remoteStatsTable } from "./report.ts";
import { fieldsOf, remoteEndpoint } from "./request.ts";

/** `eyrie generate --remote URL`: one prompt in, a server's answer on stdout. Returns the exit code. */
export async function runRemoteGenerate(
  { prompt: argument, options, remote }: {
    readonly prompt: string | undefined;
    readonly options: GenerateOptions;
    readonly remote: string;
  },
  io: Io,
): Promise<number> {
  const { signal } = io;
  // Mistakes are reported before anything is sent.
  const endpoint = remoteEndpoint(remote);
  const { maxTokens = MAX_TOKENS } = options;
  const grammar = grammarOf(options);
  const fields = fieldsOf({ ...options, maxTokens }, endpoint, grammar);
  const source = { argument, file: options.promptFile };
  const text = await unlessAborted(readPrompt(source, io), signal);
  if (text === undefined) return INTERRUPTED;
  const server = await openServer(endpoint, { model: options.model, signal });
  const prompt = promptOf(text, options);
  const { quiet, json } = options;
  const shown = { reasoning: !quiet && !json, answer: !json };
  const writer = endingLine(partedWriter({ io, shown }), json ? undefined : io);
  const answer = await answerRemotely(server, { prompt, fields, signal }, writer);
  report(server, answer, { options, grammar, io, request: { ...prompt, ...fields } });
  return answer.finishReason === "interrupt" ? INTERRUPTED : 0;
}

function promptOf(text: string, { raw, system }: GenerateOptions): RemotePrompt {
  if (raw) return { raw: text };
  const first = system === undefined ? [] : [{ role: "system", content: system }];
  return { messages: [...first, { role: "user", content: text }] };
}

/** Ends the last line of what was written, however the answer ends. */
function endingLine(writer: PartedWriter, io: Io | undefined): PartedWriter {
  let last = "\n";
  return {
    put(parted) {
      last = parted.text.at(-1) ?? last;
      writer.put(parted);
    },
    end() {
      writer.end();
      if (last !== "\n") io?.stdout.write("\n");
    },
  };
}

function report(
  server: Server,
  answer: RemoteAnswer,
  { options: { stats, quiet, json, maxTokens }, grammar, io, request }: {
    readonly options: GenerateOptions;
    readonly grammar: Grammar | undefined;
    readonly io: Io;
    readonly request: Json;
  },
): void {
  if (json) io.stdout.write(`${JSON.stringify(remoteJson(server, answer, request))}\n`);
  if (answer.finishReason === "interrupt" && answer.pieces === 0) return;
  if (stats) io.stderr.write(`${remoteStatsTable(server, answer)}\n`);
  else if (!quiet) io.stderr.write(`${remoteStatsLine(answer)}\n`);
  if (quiet || answer.finishReason !== "length") return;
  const { outputTokens = Infinity } = answer;
  const cut = outputTokens < (maxTokens ?? MAX_TOKENS)
    ? `The server cut the answer at ${outputTokens} tokens, below --max-tokens.`
    : cutAtText(maxTokens);
  io.stderr.write(`${cut}${incompleteText(grammar, answer.text)}\n`);
}
