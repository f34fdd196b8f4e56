import { UsageError } from "../../errors.ts";
import { refuseImpossibleBench } from "./bench_flags.ts";
import type { FlagTable } from "./flag.ts";
import { commandHelp, overview } from "./help.ts";
import {
  type BenchOptions,
  type ChatOptions,
  type CheckOptions,
  type CommandName,
  COMMANDS,
  type ConvertOptions,
  type DoctorOptions,
  flagsOf,
  type GenerateOptions,
  type InspectOptions,
  type ModelsOptions,
  type PullOptions,
  type RemoveOptions,
} from "./options.ts";
import { readFlags, type Typed } from "./read_flags.ts";

/** What the command line asks for. */
export type Invocation =
  | {
    readonly command: "generate";
    readonly prompt: string | undefined;
    readonly options: GenerateOptions;
  }
  | { readonly command: "chat"; readonly options: ChatOptions }
  | { readonly command: "bench"; readonly options: BenchOptions }
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
  | { readonly command: "doctor"; readonly options: DoctorOptions }
  /** Help: print the text and exit. */
  | { readonly command: "print"; readonly text: string }
  | { readonly command: "version" };

type Given = Typed["given"];

/** Reads the command line; every mistake is a `UsageError` that names the flag and what is allowed. */
export function parseArguments(args: readonly string[]): Invocation {
  const [first, ...rest] = args;
  if (first === undefined || first === "--help" || first === "-h") return print(overview());
  if (first === "--version" || first === "-V") return { command: "version" };
  if (first === "help") {
    return print(rest[0] === undefined ? overview() : commandHelp(commandNamed(rest[0])));
  }
  return parseCommand(commandNamed(first), rest);
}

function print(text: string): Invocation {
  return { command: "print", text };
}

function commandNamed(name: string): CommandName {
  if (Object.hasOwn(COMMANDS, name)) return name as CommandName;
  throw new UsageError(
    `Cannot run "${name}": commands are ${Object.keys(COMMANDS).join(", ")}; see eyrie --help`,
  );
}

function parseCommand(name: CommandName, args: readonly string[]): Invocation {
  const flags = flagsOf(name);
  const { given, operands } = readFlags(name, args);
  if (given["help"] === true) return print(commandHelp(name));
  if (name === "bench") refuseImpossibleBench(given);
  else refuseImpossible(given);
  const options = Object.freeze(withDefaults(flags, given));
  const spec = COMMANDS[name].operands ?? [];
  const lacking = spec.find(({ required }, i) => required && operands[i] === undefined);
  if (lacking !== undefined) {
    throw new UsageError(`Cannot run "${name}": ${lacking.name} is missing; ${lacking.help}`);
  }
  // The values have the types of the table's rows, which the compiler cannot follow through strings.
  return { command: name, ...taken(name, operands), options } as unknown as Invocation;
}

/** The operands by the names that the command has for them. */
function taken(name: CommandName, operands: Typed["operands"]): Record<string, unknown> {
  if (COMMANDS[name].operands?.at(-1)?.many) return { names: operands };
  const [first, second] = operands;
  return name === "convert" ? { from: first, to: second } : { prompt: first };
}

function withDefaults(flags: FlagTable, given: Given): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [key, flag] of Object.entries(flags)) {
    if (flag.type === "switch") values[key] = given[key] === true;
    else if (flag.type === "list" || flag.type === "names") values[key] = given[key] ?? [];
    else values[key] = given[key] ?? ("default" in flag ? flag.default : undefined);
  }
  return values;
}

/** Flags that contradict each other. `given` has only what was typed, no defaults. */
function refuseImpossible(given: Given): void {
  const { draft, algorithm, numSteps, model } = given;
  // A NextN layer is stored in the target's own files.
  const within = algorithm === "NEXTN";
  const speculates = algorithm !== undefined && algorithm !== "NONE";
  const without = draft === "none"
    ? "--draft none"
    : algorithm === "NONE"
    ? "--speculative-algorithm NONE"
    : undefined;
  const drafts = (steps: unknown) => typeof steps === "number" && steps > 0;
  const clash = (flag: string, other: string, allowed: string) => {
    throw new UsageError(`Cannot use "${flag}" with "${other}": ${allowed}`);
  };
  if (speculates && draft === "none") {
    clash(
      `--speculative-algorithm ${algorithm}`,
      "--draft none",
      "it needs a draft; allowed is NONE",
    );
  }
  const lacking = model !== undefined && draft === undefined && !within;
  const nowhere = model === undefined && draft === undefined && given["randomDraft"] === undefined;
  if (algorithm === "STANDALONE" && nowhere) {
    throw new UsageError(
      'Cannot use "--speculative-algorithm STANDALONE": it needs a draft; give --draft MODEL',
    );
  }
  if (speculates && lacking) {
    clash(
      `--speculative-algorithm ${algorithm}`,
      "--model",
      "it needs a draft; give --draft MODEL",
    );
  }
  if (without === undefined && lacking && drafts(numSteps)) {
    clash(`--speculative-num-steps ${numSteps}`, "--model", "it needs a draft; give --draft MODEL");
  }
  if (algorithm === "NONE" && draft !== undefined && draft !== "none") {
    clash("--speculative-algorithm NONE", `--draft ${draft}`, "allowed is --draft none");
  }
  if (without !== undefined && drafts(numSteps)) {
    clash(`--speculative-num-steps ${numSteps}`, without, "nothing drafts; allowed is 0");
  }
  if (given["raw"] === true && given["system"] !== undefined) {
    clash("--system", "--raw", "a raw prompt has no system message; write it into the prompt");
  }
  if (given["quiet"] === true && given["stats"] === true) {
    clash("--stats", "--quiet", "allowed is one of them");
  }
}
