import { UsageError } from "../../errors.ts";
import { type Topic, TOPIC_NAMES } from "../help/topics.ts";
import { clash } from "./clash.ts";
import type { CommandName } from "./command.ts";
import { refuseBesideBatch, refuseContradictions } from "./contradictions.ts";
import type { FlagTable } from "./flag.ts";
import { commandHelp, overview } from "./help.ts";
import { didYouMean, nearest } from "./nearest.ts";
import { COMMANDS, flagsOf } from "./commands.ts";
import type {
  BenchOptions,
  BreakevenOptions,
  ChatOptions,
  CheckOptions,
  ConvertOptions,
  DoctorOptions,
  GenerateOptions,
  InspectOptions,
  LoadOptions,
  ModelsOptions,
  ProfileOptions,
  PullOptions,
  RemoveOptions,
  ServeCommandOptions,
  ServeOptions,
  SimulateOptions,
  TokenMapOptions,
} from "./options.ts";
import { asTyped, readFlags, type Typed } from "./read_flags.ts";
import { NO_SETTINGS, type Settings, withSettings } from "./settings.ts";

/** What `eyrie completion` knows. */
export type Shell = "bash" | "zsh" | "fish";

/** Servers that `eyrie serve-command` has a command for. */
export type OtherEngine = "sglang" | "vllm";

/** What the command line asks for. */
export type Invocation =
  | {
    readonly command: "generate";
    readonly prompt: string | undefined;
    /** Where no draft is named, one is looked for: it was typed as `eyrie run MODEL PROMPT`. */
    readonly drafts: boolean;
    readonly options: GenerateOptions;
  }
  | { readonly command: "chat"; readonly options: ChatOptions }
  | { readonly command: "serve"; readonly options: ServeOptions }
  | {
    readonly command: "serve-command";
    readonly engine: OtherEngine;
    readonly options: ServeCommandOptions;
  }
  | { readonly command: "bench"; readonly options: BenchOptions }
  | { readonly command: "bench load"; readonly options: LoadOptions }
  | { readonly command: "breakeven"; readonly options: BreakevenOptions }
  | { readonly command: "simulate"; readonly options: SimulateOptions }
  | { readonly command: "profile"; readonly options: ProfileOptions }
  | { readonly command: "check"; readonly options: CheckOptions }
  | { readonly command: "inspect"; readonly options: InspectOptions }
  | { readonly command: "pull"; readonly names: readonly string[]; readonly options: PullOptions }
  | { readonly command: "models"; readonly options: ModelsOptions }
  | { readonly command: "rm"; readonly names: readonly string[]; readonly options: RemoveOptions }
  | {
    readonly command: "convert";
    readonly from: string;
    readonly to: string;
    readonly options: ConvertOptions;
  }
  | {
    readonly command: "token-map";
    readonly names: readonly string[];
    readonly options: TokenMapOptions;
  }
  | { readonly command: "doctor"; readonly options: DoctorOptions }
  | { readonly command: "completion"; readonly shell: Shell }
  /** `all`: the whole page. */
  | { readonly command: "topic"; readonly topic: Topic; readonly all: boolean }
  /** Help: print the text and exit. */
  | { readonly command: "print"; readonly text: string }
  | { readonly command: "version" };

type GivenFlags = Typed["given"];

/** After `--help`, and at the end of `eyrie help COMMAND`: all flags. */
const ALL = "all";

/**
 * Reads the command line; every mistake is a `UsageError` that names the flag and what is allowed.
 *
 * @param settings flags that are set elsewhere; asked for where a command is run.
 */
export function parseArguments(
  args: readonly string[],
  settings: () => Settings = () => NO_SETTINGS,
): Invocation {
  const [first, ...rest] = args;
  if (first === undefined || first === "--help" || first === "-h") return print(overview());
  if (first === "--version" || first === "-V") return { command: "version" };
  if (first === "help") return helpOn(rest);
  const { name, args: flags } = commandIn(args);
  return parseCommand(name, flags, settings);
}

/** An error message with the flags spelled as in the arguments that led to it. */
export function messageAsTyped(message: string, args: readonly string[]): string {
  try {
    const { name, args: flags } = commandIn(args);
    return asTyped(message, name, flags);
  } catch (error) {
    if (error instanceof UsageError) return message; // it is about the command itself
    throw error;
  }
}

/**
 * `eyrie help`, alone, with a topic, or with a command (the same as the command's `--help`). `all` as the
 * last word prints a topic's whole page, or all of a command's flags.
 */
function helpOn(words: readonly string[]): Invocation {
  const [word, ...rest] = words.filter((word) => word !== "--help" && word !== "-h");
  if (word === undefined) return print(overview());
  const all = rest.at(-1) === ALL;
  const more = all ? rest.slice(0, -1) : rest;
  if (TOPIC_NAMES.includes(word)) {
    refuseAfter(`help ${word}`, more);
    return { command: "topic", topic: word as Topic, all };
  }
  const { name, args } = commandIn([word, ...more], TOPIC_NAMES);
  refuseAfter(`help ${name}`, args);
  return print(commandHelp(name, { all }));
}

function refuseAfter(help: string, words: readonly string[]): void {
  if (words.length === 0) return;
  throw new UsageError(
    `Cannot use "${words.join(" ")}" after "${help}": allowed is ${ALL}, or nothing`,
  );
}

/** The command that the words begin with, of one word or of two, and the words after it. */
function commandIn(
  [first = "", ...rest]: readonly string[],
  others: readonly string[] = [],
): { readonly name: CommandName; readonly args: readonly string[] } {
  const [second] = rest;
  const longer = Object.keys(COMMANDS).filter((name) => name.startsWith(`${first} `));
  if (second === undefined || second.startsWith("-") || longer.length === 0) {
    return { name: commandNamed(first, others), args: rest };
  }
  const typed = `${first} ${second}`;
  if (longer.includes(typed)) return { name: typed as CommandName, args: rest.slice(1) };
  const near = nearest(second, longer.map((name) => name.slice(first.length + 1)));
  throw new UsageError(
    `Cannot run "${typed}": no such command${didYouMean(near.map((name) => `${first} ${name}`))} ` +
      `(there are ${[first, ...longer].join(", ")})`,
  );
}

function print(text: string): Invocation {
  return { command: "print", text };
}

/** @param others what else could have stood there, and been meant. */
function commandNamed(name: string, others: readonly string[]): CommandName {
  if (Object.hasOwn(COMMANDS, name)) return name as CommandName;
  if (name.startsWith("-")) {
    throw new UsageError(`Cannot use "${name}" here: a command comes first, see eyrie --help`);
  }
  const specs = Object.entries(COMMANDS);
  const found = specs.find(([, { alias }]) => alias === name);
  if (found !== undefined) return found[0] as CommandName;
  const names = specs.flatMap(([name, { alias }]) => [name, alias ?? name]);
  const near = nearest(name, [...names, ...others]);
  throw new UsageError(
    near.length > 0
      ? `Cannot run "${name}": no such command${others.length > 0 ? " or topic" : ""}${
        didYouMean([...new Set(near)])
      } (eyrie --help lists them)`
      : `Cannot run "${name}": commands are ${Object.keys(COMMANDS).join(", ")}${
        others.length > 0 ? `; topics are ${others.join(", ")}` : ""
      }; see eyrie --help`,
  );
}

function parseCommand(
  name: CommandName,
  args: readonly string[],
  settings: () => Settings,
): Invocation {
  const flags = flagsOf(name);
  const { given: typed, operands } = readFlags(name, args);
  if (typed["help"] === true) {
    return print(commandHelp(name, { all: operands.at(-1) === ALL }));
  }
  const prompt = name === "generate" ? operands[0] : undefined;
  const check = (given: GivenFlags) => {
    refuseContradictions(name, given, flags);
    refuseBesideBatch(given, prompt);
  };
  const asked = withModel(name, typed, operands);
  check(asked);
  const given = withSettings(name, asked, settings(), check);
  const spec = COMMANDS[name].operands ?? [];
  const lacking = spec.find(({ required }, i) => required && operands[i] === undefined);
  if (lacking !== undefined) {
    throw new UsageError(`Cannot run "${name}": ${lacking.name} is missing; ${lacking.help}`);
  }
  for (const [i, { choices }] of spec.entries()) {
    if (choices === undefined || choices.includes(operands[i] ?? "")) continue;
    throw new UsageError(`Cannot run "${name} ${operands[i]}": allowed is ${choices.join(", ")}`);
  }
  const [first, second] = operands;
  // ollama's `run MODEL PROMPT`.
  if (name === "chat" && second !== undefined) return generating(given, second, { drafts: true });
  if (name === "generate") return generating(given, first, { drafts: false });
  const options = Object.freeze(withDefaults(flags, given));
  // The values have the types of the table's rows, which the compiler cannot follow through strings.
  return { command: name, ...taken(name, operands), options } as unknown as Invocation;
}

/** `eyrie run MODEL` and `eyrie inspect MODEL`: the operand is what `--model` says. */
function withModel(name: CommandName, given: GivenFlags, operands: Typed["operands"]): GivenFlags {
  const at = COMMANDS[name].operands?.findIndex(({ name }) => name === "MODEL") ?? -1;
  const model = operands[at];
  if (model === undefined) return given;
  if (given["model"] === undefined) return { ...given, model };
  return clash(model, "--model", "allowed is one of them");
}

function generating(
  given: GivenFlags,
  operand: string | undefined,
  { drafts }: { readonly drafts: boolean },
): Invocation {
  return {
    command: "generate",
    prompt: operand,
    drafts,
    options: Object.freeze(withDefaults(flagsOf("generate"), given)),
  } as unknown as Invocation;
}

/** The operands by the names that the command has for them. */
function taken(name: CommandName, operands: Typed["operands"]): Record<string, unknown> {
  if (COMMANDS[name].operands?.at(-1)?.many) return { names: operands };
  const [from, to] = operands;
  if (name === "completion") return { shell: from };
  if (name === "serve-command") return { engine: from };
  return name === "convert" ? { from, to } : {};
}

function withDefaults(flags: FlagTable, given: GivenFlags): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [key, flag] of Object.entries(flags)) {
    if (flag.type === "switch") values[key] = given[key] === true;
    else if (flag.type === "bias") values[key] = given[key] ?? {};
    else if (flag.type === "list" || flag.type === "names") values[key] = given[key] ?? [];
    else values[key] = given[key] ?? ("default" in flag ? flag.default : undefined);
  }
  return values;
}
