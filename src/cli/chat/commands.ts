import { UsageError } from "../../errors.ts";
import { didYouMean, nearest } from "../options/nearest.ts";
import { aligned } from "../terminal/aligned.ts";
import {
  SETTING_NAMES,
  settingAllows,
  settingTexts,
  TEXT_SETTINGS,
  withSetting,
} from "./settings.ts";
import {
  beforeAnswer,
  type ChatState,
  withoutNewest,
  withoutOldest,
  withQuestion,
} from "./state.ts";
import { expandHome, withoutQuotes } from "./paths.ts";

/** The word that takes the system message away. */
const NO_SYSTEM = "none";

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
  "/help": {
    argument: "[COMMAND]",
    help: "this list, or what one command takes",
    run: (state, name) => [state, say(name === "" ? slashHelp() : commandHelp(state, name))],
  },
  "/clear": {
    help: "forget the conversation, keep the system message",
    run: (state) => [{ ...state, messages: [], attempt: 0, tokens: 0 }, say("Cleared.")],
  },
  "/system": {
    argument: "[TEXT]",
    help: `show the system message, or set it; ${NO_SYSTEM} removes it`,
    run: system,
  },
  "/set": {
    argument: "[NAME VALUE]",
    help: "list the settings, or change one",
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
  "/undo": { help: "take the newest message and its answer back", run: undo },
  "/drop": {
    argument: "[COUNT]",
    help: "drop the oldest messages and their answers, to make room",
    run: drop,
  },
  "/history": {
    argument: "[COUNT]",
    help: "the newest lines typed; Ctrl+R searches them",
    run: recent,
  },
  "/bye": {
    help: "leave (so do Ctrl+D, /exit and /quit)",
    run: (state) => [state, { kind: "leave" }],
  },
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

/** Handles one entry: a command changes the state, anything else is a question. */
export function runEntry(state: ChatState, entry: Entry, context: Context): Step {
  if (entry.text.trim() === "") return [state, { kind: "nothing" }];
  const typed = entry.text.trim();
  if (entry.literal || !typed.startsWith("/")) {
    return [withQuestion(state, entry.text), { kind: "answer" }];
  }
  if (typed.startsWith("//")) return [withQuestion(state, typed.slice(1)), { kind: "answer" }];
  const [, name = "", argument = ""] = /^(\S+)\s*([^]*)$/.exec(typed) ?? [];
  const [, command] = commandNamed(name);
  if (argument !== "" && command.argument === undefined) {
    throw new UsageError(`Cannot run "${name} ${argument}": ${name} takes no argument`);
  }
  return command.run(state, argument, context);
}

/** The command of a name or of another name, with its first name. */
function commandNamed(name: string): readonly [string, SlashCommand] {
  const meant = Object.hasOwn(ALIASES, name) ? ALIASES[name] ?? name : name;
  const command = Object.hasOwn(COMMANDS, meant) ? COMMANDS[meant] : undefined;
  if (command !== undefined) return [meant, command];
  const near = nearest(name.slice(1), SLASH_COMMANDS.map(([each]) => each.slice(1)));
  throw new UsageError(
    near.length > 0
      ? `Cannot run "${name}": no such command${didYouMean(near.map((each) => `/${each}`))} ` +
        "(/help lists them; // begins a message with a slash)"
      : `Cannot run "${name}": no such command; /help lists them`,
  );
}

/** The text of `/help`. */
export function slashHelp(): string {
  const rows = Object.entries(COMMANDS).map(([name, { argument = "", help }]) =>
    [`${name} ${argument}`.trimEnd(), help] as const
  );
  rows.push(
    ["//TEXT", "a message that begins with a slash"],
    ["Ctrl+J, Alt+Enter", "a new line in the message"],
    ['"""', "begins and ends a message of several lines"],
    ["Ctrl+C", "stops the answer"],
  );
  return aligned(rows);
}

/** The text of `/help COMMAND`. */
function commandHelp({ settings }: ChatState, typed: string): string {
  const [name, { argument = "", help }] = commandNamed(typed.startsWith("/") ? typed : `/${typed}`);
  const others = Object.keys(ALIASES).filter((alias) => ALIASES[alias] === name);
  const row = [
    [`${name} ${argument}`.trimEnd(), help],
    ...others.map((other) => [other, "the same"]),
  ];
  if (name !== "/set") return aligned(row);
  const allowed = Object.keys(settingTexts(settings))
    .map((setting) => [setting, settingAllows(setting, settings)]);
  return `${aligned(row)}\n\n${aligned(allowed)}`;
}

function say(text: string): Next {
  return { kind: "say", text };
}

function set(state: ChatState, argument: string, { drafts, thinks = true }: Context): Step {
  const [, typed = "", value = ""] = /^(\S*)\s*([^]*)$/.exec(argument) ?? [];
  // As the fields of requests are spelled.
  const name = typed.replaceAll("_", "-");
  if (name === "") return [state, say(settingRows(state))];
  if (name === "policy") {
    throw new UsageError(
      'Cannot set "policy": the policy is fixed when the model is opened; start with --policy NAME',
    );
  }
  if (!SETTING_NAMES.includes(name)) {
    const near = nearest(name, SETTING_NAMES);
    throw new UsageError(
      near.length > 0
        ? `Cannot set "${name}": no such setting${didYouMean(near)} (/set lists them)`
        : `Cannot set "${name}": allowed are ${SETTING_NAMES.join(", ")}`,
    );
  }
  if (value === "" || (!TEXT_SETTINGS.includes(name) && /\s/.test(value))) {
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
  return [{ ...state, settings }, say(`${name} = ${settingTexts(settings)[name]}${note}`)];
}

/** The text of `/set` alone. */
function settingRows({ settings }: ChatState): string {
  return aligned(Object.entries(settingTexts(settings)));
}

function save(state: ChatState, argument: string): Step {
  const [, force, path = ""] = /^(-f(?:\s+|$))?([^]*)$/.exec(argument) ?? [];
  return [state, { kind: "save", path: filePath("/save", path), force: force !== undefined }];
}

function load(state: ChatState, path: string): Step {
  return [state, { kind: "load", path: filePath("/load", path) }];
}

function filePath(command: string, path: string): string {
  const bare = withoutQuotes(path);
  if (bare === "") throw new UsageError(`Cannot run "${command}": FILE is missing`);
  return expandHome(bare);
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

function system(state: ChatState, text: string): Step {
  if (text === "") {
    const shown = state.system === undefined
      ? "No system message; /system TEXT sets one."
      : `${state.system}\n(/system ${NO_SYSTEM} removes it)`;
    return [state, say(shown)];
  }
  if (text === NO_SYSTEM) {
    return [{ ...state, system: undefined }, say("System message removed.")];
  }
  return [{ ...state, system: text }, say("System message set.")];
}

function undo(state: ChatState): Step {
  const shorter = withoutNewest(state);
  if (shorter === undefined) throw new UsageError('Cannot run "/undo": nothing was said yet');
  return [shorter, say(`Taken back: ${state.messages[shorter.messages.length]?.content ?? ""}`)];
}

function drop(state: ChatState, argument: string): Step {
  const count = argument === "" ? 1 : Number(argument);
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new UsageError(`Cannot run "/drop ${argument}": COUNT is an integer from 1`);
  }
  let shorter = state;
  for (let at = 0; at < count && shorter.messages.length > 0; at++) {
    shorter = withoutOldest(shorter) ?? { ...shorter, messages: [], attempt: 0, tokens: 0 };
  }
  const left = shorter.messages.length;
  return [shorter, say(`Dropped ${state.messages.length - left} messages, ${left} are left.`)];
}

function regen(state: ChatState): Step {
  const before = beforeAnswer(state);
  if (before === undefined) throw new UsageError('Cannot run "/regen": there is no answer yet');
  return [before, { kind: "answer" }];
}
