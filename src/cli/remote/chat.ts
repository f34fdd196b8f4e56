import { readServer, speculationText } from "../../remote/reading.ts";
import { openServer, type Server } from "../../remote/server.ts";
import { type ChatContext, chatWith, linesOf } from "../chat/chat.ts";
import type { ChatModel, Listener, Reply } from "../chat/model.ts";
import { remoteSettings } from "../chat/settings.ts";
import { allMessages, type ChatState } from "../chat/state.ts";
import { partedWriter } from "../generate/answer_writer.ts";
import { templateArguments } from "../open/template.ts";
import type { ChatOptions } from "../options/options.ts";
import { answerRemotely, type RemoteAnswer } from "./answer.ts";
import { remoteStatsLine, serverText } from "./report.ts";
import { fieldsOf, remoteEndpoint } from "./request.ts";

/** `eyrie chat --remote URL`. Returns the exit code. */
export async function runRemoteChat(
  options: ChatOptions,
  context: Pick<ChatContext, "io" | "historyFile"> & { readonly remote: string },
): Promise<number> {
  templateArguments(options); // mistakes are reported before anything is sent
  const endpoint = remoteEndpoint(context.remote);
  // Before the server is asked: what is typed meanwhile waits for the first prompt, and Ctrl+C is a key.
  using lines = linesOf(options, context);
  const stop = new AbortController();
  const signal = AbortSignal.any([context.io.signal, stop.signal]);
  const { server, speculation } = await lines.answering(() => stop.abort(), async () => {
    const opened = await openServer(endpoint, { model: options.model, signal });
    return { server: opened, speculation: (await readServer(opened, signal)).speculation };
  });
  const drafts = speculationText(speculation);
  return await chatWith(remoteModel(server, options, drafts), options, { io: context.io, lines });
}

/** A chat with a server, which decides itself how much of the conversation fits. */
function remoteModel(
  server: Server,
  options: ChatOptions,
  drafts: string | undefined,
): ChatModel {
  const draftsText = drafts === undefined ? "" : `, ${drafts}`;
  return {
    name: server.model,
    drafts: false,
    // Its chat template cannot be seen.
    thinks: true,
    greeting: `${server.model}, ${serverText(server)}${draftsText}. /help lists the commands.`,
    settings: remoteSettings(options),
    facts: ({ tokens }) => [
      ["model", server.model],
      ["server", serverText(server)],
      ["speculation", drafts ?? "not reported"],
      ["context", `${tokens} tokens after the last answer`],
    ],
    answer: (asked, to) => answer(server, { options, asked, to }),
  };
}

async function answer(
  server: Server,
  { options, asked, to }: {
    readonly options: ChatOptions;
    readonly asked: ChatState;
    readonly to: Listener;
  },
): Promise<Reply | undefined> {
  const { io, signal, interactive, say } = to;
  const { settings, attempt } = asked;
  const { seed } = settings;
  const { templateArg, ignoreEos, quiet } = options;
  const own = {
    ...settings,
    templateArg,
    ignoreEos,
    // A fixed seed must still let /regen find another answer.
    seed: seed === undefined ? undefined : (seed + attempt) >>> 0,
  };
  const writer = partedWriter({ io, shown: { reasoning: !quiet, answer: true }, layout: true });
  let written = "";
  const put: typeof writer.put = (parted) => {
    written += parted.text;
    writer.put(parted);
  };
  try {
    const fields = fieldsOf(own, server.endpoint, settings.format?.grammar);
    const prompt = { messages: allMessages(asked) };
    const result = await answerRemotely(server, { prompt, fields, signal }, { ...writer, put });
    const { text, reasoning, promptTokens = 0, outputTokens = 0 } = result;
    const stopped = result.finishReason === "interrupt";
    return {
      state: asked,
      text,
      reasoning,
      stopped,
      nothing: stopped && result.pieces === 0,
      tokens: promptTokens + outputTokens,
      cut: cutNote(result),
      stats: remoteStatsLine(result),
    };
  } catch (error) {
    // What is said of it has a line of its own.
    if (written !== "" && !written.endsWith("\n")) io.stdout.write("\n");
    if (!signal.aborted || error !== signal.reason) throw error;
    if (interactive) say("Stopped.");
    return undefined;
  }
}

/** Why an answer ends where the model had not ended it; undefined where it had. */
function cutNote({ finishReason, outputTokens }: RemoteAnswer): string | undefined {
  if (finishReason !== "length") return undefined;
  const at = outputTokens === undefined ? "" : ` at ${outputTokens} tokens`;
  return `The answer was cut${at}; /set max-tokens allows more, as far as the server does.`;
}
