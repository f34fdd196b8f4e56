import { aligned } from "../terminal/aligned.ts";
import { wrapNote } from "../terminal/wrap.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { RemoteError, UsageError } from "../../errors.ts";
import { answer, type Chat } from "./answer.ts";
import { type Entry, type Next, runEntry } from "./commands.ts";
import { complete } from "./completion.ts";
import { type History, memoryHistory, openHistory } from "../terminal/history.ts";
import { markdownWriter } from "../terminal/markdown.ts";
import { visible } from "../terminal/visible.ts";
import { warn } from "../terminal/warn.ts";
import { terminalLines } from "../terminal/editor.ts";
import { feed, type Pending } from "./entries.ts";
import { type LineSource, pipedLines } from "../terminal/lines.ts";
import type { Engine } from "../../engine/engine.ts";
import { engineModel } from "./engine_model.ts";
import type { ChatModel } from "./model.ts";
import { separatedOutput } from "./separated.ts";
import { givenSettings, settingTexts } from "./settings.ts";
import type { ChatState } from "./state.ts";
import { loadChat, saveChat } from "./store.ts";
import { templateArguments } from "../open/template.ts";
import { randomSeed } from "../../engine/sampling.ts";
import { isThere } from "../open/is_there.ts";
import { type CommandContext, openWithProgress } from "../open/open.ts";
import type { ChatOptions } from "../options/options.ts";

export interface ChatContext extends CommandContext {
  /** Where the history is kept across chats. */
  readonly historyFile?: string | undefined;
}

/** What the lines of a chat need. */
type TerminalContext = Pick<ChatContext, "io" | "historyFile">;

/** `eyrie chat`. Returns the exit code. */
export async function runChat(options: ChatOptions, context: ChatContext): Promise<number> {
  templateArguments(options); // mistakes are reported before anything is opened
  // Before the model is opened: what is typed while it loads waits for the first prompt.
  using lines = linesOf(options, context);
  await using engine = await openWhile(lines, options, context);
  if (engine === undefined) return INTERRUPTED;
  if (!engine.info.hasChatTemplate) {
    throw new UsageError(
      `Cannot chat with "${engine.info.name}": the checkpoint has no chat template; ` +
        "eyrie generate --raw takes plain prompts",
    );
  }
  const drawSeed = context.randomSeed ?? randomSeed;
  return await chatWith(engineModel(engine, { options, drawSeed }), options, { ...context, lines });
}

/** Opens the engine; Ctrl+C meanwhile is a key of the terminal, and gives it up. */
async function openWhile(
  lines: LineSource,
  options: ChatOptions,
  context: ChatContext,
): Promise<Engine | undefined> {
  const { io } = context;
  const stop = new AbortController();
  const loading = withChanged(io, { signal: AbortSignal.any([io.signal, stop.signal]) });
  return await lines.answering(
    () => stop.abort(),
    // `/set num-steps` may ask for any of them, and `/set format` for a grammar.
    () =>
      openWithProgress(options, { ...context, io: loading }, { allSteps: true, constrained: true }),
  );
}

/** The streams with another output or signal. */
function withChanged(io: Io, changed: Partial<Pick<Io, "stdout" | "signal">>): Io {
  const { stdin, stdout, stderr, colour, signal, onSignal, suspend } = io;
  return { stdin, stdout, stderr, colour, signal, onSignal, suspend, ...changed };
}

/** Whether a person sits at a terminal. */
function isInteractive({ stdin, stderr }: Io): boolean {
  return stdin.isTerminal && stderr.isTerminal;
}

/** Where the chat's lines come from; from now on the terminal is the editor's. */
export function linesOf(options: ChatOptions, context: TerminalContext): LineSource {
  const { io } = context;
  return isInteractive(io)
    ? terminalLines(io, { history: historyOf(options, context), complete })
    : pipedLines(io);
}

/** A chat from its first line to its last. Returns the exit code. */
export async function chatWith(
  model: ChatModel,
  options: ChatOptions,
  { io: terminal, lines }: { readonly io: Io; readonly lines: LineSource },
): Promise<number> {
  const interactive = isInteractive(terminal);
  // On a terminal the questions separate the answers; a file or a pipe gets only the answers.
  const answers = separatedOutput(terminal.stdout, !interactive || !terminal.stdout.isTerminal);
  const io = withChanged(terminal, { stdout: answers });
  const chat: Chat = {
    answers,
    model,
    options,
    io,
    lines,
    interactive,
    say: (text) => say(io, text),
  };
  if (interactive && !options.quiet) chat.say(model.greeting);
  await converse(chat, {
    system: options.system,
    messages: [],
    settings: model.settings,
    attempt: 0,
    tokens: 0,
  });
  return io.signal.aborted ? INTERRUPTED : 0;
}

function say({ stderr, colour }: Io, text: string): void {
  const note = stderr.isTerminal ? wrapNote(visible(text), stderr.columns()) : text;
  stderr.write(colour ? `\x1b[2m${note}\x1b[22m\n` : `${note}\n`);
}

function historyOf(
  { noHistory, quiet }: ChatOptions,
  { historyFile, io }: TerminalContext,
): History {
  if (noHistory || historyFile === undefined) return memoryHistory();
  return openHistory(historyFile, (line) => warn(line, { io, quiet }));
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
  const typed: string[] = [];
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
      typed.length = 0;
      continue;
    }
    typed.push(line.text);
    const fed = feed(pending, line.text);
    if ("entry" in fed) {
      chat.lines.remember(typed.join("\n"));
      return fed.entry;
    }
    pending = fed.pending;
  }
}

/** Does what the entry asks. A user's mistake is reported in one line, and the chat goes on unchanged. */
async function heed(chat: Chat, state: ChatState, entry: Entry): Promise<ChatState | undefined> {
  try {
    const [changed, next] = runEntry(state, entry, chat.model);
    return await act(chat, { before: state, changed, next });
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof RemoteError)) throw error;
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
      chat.say(showText(chat.model, changed));
      return changed;
    case "history":
      chat.say(historyText(chat.lines.history.slice(0, next.count)));
      return changed;
    case "save":
      await save(chat, changed, next);
      return changed;
    case "load":
      return await load(chat, changed, next.path);
    case "answer":
      return await answer(chat, { before, asked: changed });
    case "leave":
      return undefined;
  }
}

/** The text of `/history`, oldest first as a terminal scrolls. */
function historyText(newest: readonly string[]): string {
  return newest.length === 0 ? "Nothing yet." : newest.toReversed().map(inOneRow).join("\n");
}

/** A message of several lines with a sign for each line end. */
function inOneRow(text: string): string {
  return text.replaceAll("\n", "\u240A").replaceAll("\t", "\u2409");
}

/** Writes the file; over one that is there only if the person says so. */
async function save(
  { model, interactive, io, lines, say }: Chat,
  state: ChatState,
  { path, force }: { readonly path: string; readonly force: boolean },
): Promise<void> {
  if (!force && isThere(path)) {
    if (!interactive) {
      throw new UsageError(
        `Cannot save "${path}": the file exists already; /save -f ${path} replaces it`,
      );
    }
    const line = await lines.next(`${path} exists already. Replace it? [y/N] `);
    if (line.kind !== "line") io.stderr.write("\n");
    if (line.kind !== "line" || !/^y(es)?$/i.test(line.text.trim())) return say("Not saved.");
  }
  saveChat(path, state, model.name);
  say(`Saved to ${path}.`);
}

/** The chat of a file; settings of the command line stay. */
async function load(chat: Chat, now: ChatState, path: string): Promise<ChatState> {
  const { model: { name, drafts }, options, interactive, say } = chat;
  const kept = givenSettings(options);
  const { state, model } = await loadChat(path, now, { kept, drafts });
  if (interactive) showMessages(chat, state);
  say(`Loaded ${state.messages.length} messages from ${path}.`);
  if (model !== undefined && model !== name) {
    say(`It is a conversation with ${model}; ${name} continues it.`);
  }
  const before = settingTexts(now.settings);
  const changed = Object.entries(settingTexts(state.settings))
    .filter(([setting, text]) => before[setting] !== text);
  if (changed.length > 0) {
    say(`Settings of the file: ${changed.map((pair) => pair.join(" = ")).join(", ")}.`);
  }
  if (kept.length > 0) say(`Settings of the command line stay: ${kept.join(", ")}.`);
  return state;
}

/** Shows a conversation as it looked when it was held; on stderr, as no answer is new. */
function showMessages(
  { io: { stderr, colour }, say }: Chat,
  { system, messages }: ChatState,
): void {
  if (system !== undefined) say(`System message: ${system}`);
  for (const { role, content } of messages) {
    const text = markdownWriter(stderr, { colour });
    stderr.write(
      role === "user"
        ? `>>> ${visible(content).replaceAll("\n", "\n... ")}\n`
        : `${text.write(content)}${text.end()}\n\n`,
    );
  }
}

/** The text of `/show`. */
function showText(model: ChatModel, state: ChatState): string {
  const rows = [
    ...model.facts(state),
    ["messages", String(state.messages.length)],
    ["system", state.system ?? "none"],
    ...Object.entries(settingTexts(state.settings)),
  ];
  return aligned(rows);
}
