import { UsageError } from "../../errors.ts";
import { SETTING_NAMES, settingAllows, withSetting } from "./settings.ts";
import { beforeAnswer, type ChatState, withQuestion } from "./state.ts";

/** What the program does after a line was understood. */
export type Next =
  | { readonly kind: "nothing" }
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "answer" }
  | { readonly kind: "show" }
  | { readonly kind: "save" | "load"; readonly path: string }
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
  "/set": { argument: "NAME VALUE", help: SETTING_NAMES.join(", "), run: set },
  "/show": {
    help: "model, context and settings",
    run: (state) => [state, { kind: "show" }],
  },
  "/save": { argument: "FILE", help: "write the conversation as JSON", run: file("save") },
  "/load": { argument: "FILE", help: "go on with a saved conversation", run: file("load") },
  "/regen": { help: "answer the newest message again", run: regen },
  "/history": {
    argument: "[COUNT]",
    help: "the newest lines typed; Ctrl+R searches them",
    run: recent,
  },
  "/bye": { help: "leave (so does Ctrl+D)", run: (state) => [state, { kind: "leave" }] },
};

/** Names of all commands, with what each takes. */
export const SLASH_COMMANDS: readonly (readonly [name: string, argument: string | undefined])[] =
  Object.entries(COMMANDS).map(([name, { argument }]) => [name, argument]);

/** Understands one entry: a command changes the state, anything else is a question. */
export function obey(state: ChatState, entry: Entry, context: Context): Step {
  if (entry.text.trim() === "") return [state, { kind: "nothing" }];
  const typed = entry.text.trim();
  if (entry.literal || !typed.startsWith("/")) {
    return [withQuestion(state, entry.text), { kind: "answer" }];
  }
  const [, name = "", argument = ""] = /^(\S+)\s*([^]*)$/.exec(typed) ?? [];
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
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
  const rows = Object.entries(COMMANDS)
    .map(([name, { argument, help }]) => [`${name} ${argument ?? ""}`.trimEnd(), help] as const);
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

function set(state: ChatState, argument: string, { drafts }: Context): Step {
  const [name = "", value, ...more] = argument.split(/\s+/);
  if (!SETTING_NAMES.includes(name)) {
    throw new UsageError(`Cannot set "${name}": allowed are ${SETTING_NAMES.join(", ")}`);
  }
  if (value === undefined || more.length > 0) {
    throw new UsageError(`Cannot set "${name}": it takes one value, ${settingAllows(name)}`);
  }
  const settings = withSetting(state.settings, name, value);
  if (name === "draft" && settings.draft && !drafts) {
    throw new UsageError(
      'Cannot use "/set draft on": no draft is loaded; start with --draft MODEL',
    );
  }
  return [{ ...state, settings }, say(`${name} = ${value}`)];
}

function file(kind: "save" | "load"): SlashCommand["run"] {
  return (state, path) => {
    if (path === "") throw new UsageError(`Cannot run "/${kind}": FILE is missing`);
    return [state, { kind, path }];
  };
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
