import { UsageError } from "../../errors.ts";
import { SETTING_NAMES, settingAllows, settingTexts, withSetting } from "./settings.ts";
import { beforeAnswer, type ChatState, withQuestion } from "./state.ts";
import { expandHome } from "./store.ts";

/** What the program does after a line was understood. */
export type Next =
  | { readonly kind: "nothing" }
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "answer" }
  | { readonly kind: "show" }
  | { readonly kind: "save"; readonly path: string; readonly force: boolean }
  | { readonly kind: "load"; readonly path: string }
  /** The newest `count` lines of the history. */
  | { readonly kind: "history"; readonly count: number }
  | { readonly kind: "leave" };

/** A new state and what to do with it. */
export type Step = readonly [ChatState, Next];

/** One message or command as it was typed. */
export interface Entry {
  readonly text: string;
  /** Typed between triple quotes or over several lines: a message even if it begins with `/`. */
  readonly literal: boolean;
}

interface SlashCommand {
  readonly argument?: string;
  readonly help: string;
  readonly run: (state: ChatState, argument: string, context: Context) => Step;
}

interface Context {
  /** A draft is loaded. */
  readonly drafts: boolean;
  /** The chat template asks whether to think; default true. */
  readonly thinks?: boolean;
}

const COMMANDS: Readonly<Record<string, SlashCommand>> = {
  "/help": { help: "this list", run: (state) => [state, say(slashHelp())] },
  "/clear": {
    help: "forget the conversation, keep the system message",
    run: (state) => [{ ...state, messages: [], attempt: 0, tokens: 0 }, say("Cleared.")],
  },
  "/system": {
    argument: "[TEXT]",
    help: "set the system message; without TEXT remove it",
    run: (state, text) =>
      text === ""
        ? [{ ...state, system: undefined }, say("System message removed.")]
        : [{ ...state, system: text }, say("System message set.")],
  },
  "/set": {
    argument: "[NAME VALUE]",
    help: `list the settings, or change one: ${SETTING_NAMES.join(", ")}`,
    run: set,
  },
  "/show": {
    help: "model, context and settings",
    run: (state) => [state, { kind: "show" }],
  },
  "/save": {
    argument: "[-f] FILE",
    help: "write the conversation as JSON; -f replaces a file unasked",
    run: save,
  },
  "/load": { argument: "FILE", help: "go on with a saved conversation", run: load },
  "/regen": { help: "answer the newest message again", run: regen },
  "/history": {
    argument: "[COUNT]",
    help: "the newest lines typed; Ctrl+R searches them",
    run: recent,
  },
  "/bye": { help: "leave (so does Ctrl+D)", run: (state) => [state, { kind: "leave" }] },
};

/** Other names of commands. */
const ALIASES: Readonly<Record<string, string>> = {
  "/?": "/help",
  "/exit": "/bye",
  "/quit": "/bye",
};

/** Names of all commands, other ones too, with what each takes. */
export const SLASH_COMMANDS: readonly (readonly [name: string, argument: string | undefined])[] = [
  ...Object.keys(COMMANDS),
  ...Object.keys(ALIASES),
]
  .map((name) => [name, COMMANDS[name]?.argument]);

/** Understands one entry: a command changes the state, anything else is a question. */
export function obey(state: ChatState, entry: Entry, context: Context): Step {
  if (entry.text.trim() === "") return [state, { kind: "nothing" }];
  const typed = entry.text.trim();
  if (entry.literal || !typed.startsWith("/")) {
    return [withQuestion(state, entry.text), { kind: "answer" }];
  }
  const [, name = "", argument = ""] = /^(\S+)\s*([^]*)$/.exec(typed) ?? [];
  const meant = Object.hasOwn(ALIASES, name) ? ALIASES[name] ?? name : name;
  const command = Object.hasOwn(COMMANDS, meant) ? COMMANDS[meant] : undefined;
  if (command === undefined) {
    throw new UsageError(`Cannot run "${name}": no such command; /help lists them`);
  }
  if (argument !== "" && command.argument === undefined) {
    throw new UsageError(`Cannot run "${name} ${argument}": ${name} stands alone`);
  }
  return command.run(state, argument, context);
}

/** The text of `/help`. */
export function slashHelp(): string {
  const names = (name: string) =>
    [name, ...Object.keys(ALIASES).filter((alias) => ALIASES[alias] === name)].join(", ");
  const rows = Object.entries(COMMANDS).map((
    [name, { argument, help }],
  ) => [`${names(name)} ${argument ?? ""}`.trimEnd(), help] as const);
  rows.push(
    ['"""', "begins and ends a message of several lines"],
    ["Ctrl+C", "stops the answer"],
  );
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, help]) => `${left.padEnd(width)}  ${help}`).join("\n");
}

function say(text: string): Next {
  return { kind: "say", text };
}

function set(state: ChatState, argument: string, { drafts, thinks = true }: Context): Step {
  const [, name = "", value = ""] = /^(\S*)\s*([^]*)$/.exec(argument) ?? [];
  if (name === "") return [state, say(settingRows(state))];
  if (name === "policy") {
    throw new UsageError(
      'Cannot set "policy": rounds are made for one when the model is opened; start with --policy NAME',
    );
  }
  if (!SETTING_NAMES.includes(name)) {
    throw new UsageError(`Cannot set "${name}": allowed are ${SETTING_NAMES.join(", ")}`);
  }
  if (value === "" || (name !== "stop" && /\s/.test(value))) {
    throw new UsageError(
      `Cannot set "${name}": it takes one value, ${settingAllows(name, state.settings)}`,
    );
  }
  const settings = withSetting(state.settings, name, value);
  if (name === "draft" && settings.draft && !drafts) {
    throw new UsageError(
      'Cannot use "/set draft on": no draft is loaded; start with --draft MODEL',
    );
  }
  const idle = name === "think" && settings.think !== "auto" && !thinks;
  const note = idle ? "; the chat template has no switch for it" : "";
  return [{ ...state, settings }, say(`${name} = ${value}${note}`)];
}

/** The text of `/set` alone. */
function settingRows({ settings }: ChatState): string {
  return Object.entries(settingTexts(settings))
    .map(([name, text]) => `${name.padEnd(13)}${text}`).join("\n");
}

function save(state: ChatState, argument: string): Step {
  const [, force, path = ""] = /^(-f(?:\s+|$))?([^]*)$/.exec(argument) ?? [];
  return [state, { kind: "save", path: filePath("/save", path), force: force !== undefined }];
}

function load(state: ChatState, path: string): Step {
  return [state, { kind: "load", path: filePath("/load", path) }];
}

function filePath(command: string, path: string): string {
  if (path === "") throw new UsageError(`Cannot run "${command}": FILE is missing`);
  return expandHome(path);
}

/** Lines that `/history` shows where no number is said. */
const RECENT = 20;

function recent(state: ChatState, argument: string): Step {
  const count = argument === "" ? RECENT : Number(argument);
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new UsageError(`Cannot run "/history ${argument}": COUNT is an integer from 1`);
  }
  return [state, { kind: "history", count }];
}

function regen(state: ChatState): Step {
  const before = beforeAnswer(state);
  if (before === undefined) throw new UsageError('Cannot run "/regen": there is no answer yet');
  return [before, { kind: "answer" }];
}
