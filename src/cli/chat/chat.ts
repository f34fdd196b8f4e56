import { INTERRUPTED } from "../terminal/io.ts";
import { UsageError } from "../../errors.ts";
import { answer, type Chat } from "./answer.ts";
import { type Entry, type Next, obey } from "./commands.ts";
import { terminalLines } from "../terminal/editor.ts";
import { feed, type Pending } from "./entries.ts";
import { pipedLines } from "../terminal/lines.ts";
import { settingsOf, settingTexts } from "./settings.ts";
import type { ChatState } from "./state.ts";
import { loadChat, saveChat } from "./store.ts";
import type { Engine } from "../open/engine.ts";
import { type CommandContext, openWithProgress, randomSeed } from "../open/open.ts";
import type { ChatOptions } from "../options/options.ts";

/** `eyrie chat`. Returns the exit code. */
export async function runChat(options: ChatOptions, context: CommandContext): Promise<number> {
  const { io } = context;
  // `/set num-steps` may ask for any of them.
  await using engine = await openWithProgress(options, context, { allSteps: true });
  if (engine === undefined) return INTERRUPTED;
  if (!engine.hasChatTemplate) {
    throw new UsageError(
      `Cannot chat with "${engine.name}": the checkpoint has no chat template; ` +
        "eyrie generate --raw takes plain prompts",
    );
  }
  const interactive = io.stdin.isTerminal && io.stderr.isTerminal;
  using lines = interactive ? terminalLines(io) : pipedLines(io);
  const chat: Chat = {
    engine,
    options,
    io,
    lines,
    interactive,
    drawSeed: context.randomSeed ?? randomSeed,
    say: (text) => io.stderr.write(io.colour ? `\x1b[2m${text}\x1b[22m\n` : `${text}\n`),
  };
  if (interactive && !options.quiet) chat.say(greeting(engine));
  await converse(chat, {
    system: options.system,
    messages: [],
    settings: settingsOf(options, {
      drafts: engine.algorithm !== "NONE",
      numSteps: engine.numSteps,
    }),
    attempt: 0,
    tokens: 0,
  });
  return io.signal.aborted ? INTERRUPTED : 0;
}

async function converse(chat: Chat, start: ChatState): Promise<void> {
  let state: ChatState | undefined = start;
  while (state !== undefined) {
    const entry = await nextEntry(chat);
    if (entry === undefined) return;
    state = await heed(chat, state, entry);
    if (chat.io.signal.aborted) return;
  }
}

/** The next message or command; undefined at the end of the input. */
async function nextEntry(chat: Chat): Promise<Entry | undefined> {
  let pending: Pending;
  while (true) {
    const line = await chat.lines.next(pending === undefined ? ">>> " : "... ");
    if (line.kind === "end") {
      if (chat.interactive) chat.io.stderr.write("\n");
      if (pending !== undefined) chat.say('Not sent: the message has no closing """.');
      return undefined;
    }
    if (line.kind === "interrupt") {
      chat.io.stderr.write("\n");
      if (line.empty && pending === undefined) chat.say("Use Ctrl+D or /bye to leave.");
      pending = undefined;
      continue;
    }
    const fed = feed(pending, line.text);
    if ("entry" in fed) return fed.entry;
    pending = fed.pending;
  }
}

/** Does what the entry asks; a person's mistake is a line, and nothing is lost. */
async function heed(chat: Chat, state: ChatState, entry: Entry): Promise<ChatState | undefined> {
  try {
    const [changed, next] = obey(state, entry, { drafts: chat.engine.draftName !== undefined });
    return await act(chat, { before: state, changed, next });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    chat.say(error.message);
    return state;
  }
}

async function act(
  chat: Chat,
  { before, changed, next }: { before: ChatState; changed: ChatState; next: Next },
): Promise<ChatState | undefined> {
  switch (next.kind) {
    case "nothing":
      return changed;
    case "say":
      chat.say(next.text);
      return changed;
    case "show":
      chat.say(showText(chat.engine, changed));
      return changed;
    case "save":
      await saveChat(next.path, changed, chat.engine.name);
      chat.say(`Saved to ${next.path}.`);
      return changed;
    case "load": {
      const loaded = await loadChat(next.path, changed);
      chat.say(`Loaded ${loaded.messages.length} messages from ${next.path}.`);
      return loaded;
    }
    case "answer":
      return await answer(chat, { before, asked: changed });
    case "leave":
      return undefined;
  }
}

function greeting(engine: Engine): string {
  const { draftName, device, algorithm } = engine;
  const without = algorithm === "NONE" ? "no draft" : `drafts by ${algorithm}`;
  const draft = draftName === undefined ? without : `${draftName} (${algorithm})`;
  return `${engine.name}, ${draft}, ${device.adapter}. /help lists the commands.`;
}

/** The text of `/show`. */
function showText(engine: Engine, state: ChatState): string {
  const rows: [string, string][] = [
    ["model", engine.name],
    ["draft model", engine.draftName ?? "none"],
    ["device", engine.device.adapter],
    ["context", `${state.tokens} of ${engine.contextLength} tokens after the last answer`],
    ["messages", String(state.messages.length)],
    ["system", state.system ?? "none"],
    ...Object.entries(settingTexts(state.settings)),
  ];
  return rows.map(([name, text]) => `${name.padEnd(13)}${text}`).join("\n");
}
