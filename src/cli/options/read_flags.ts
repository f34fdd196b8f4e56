import { parseArgs } from "node:util";
import { UsageError } from "../../errors.ts";
import type { CommandName } from "./command.ts";
import { allowed, type Flag, parseValue, placeholder, spellingsOf } from "./flag.ts";
import { didYouMean, nearest } from "./nearest.ts";
import { COMMANDS, flagsOf } from "./commands.ts";

/** What was typed, with no defaults: values by the flags' names in the program, and operands. */
export interface Typed {
  readonly given: Readonly<Record<string, unknown>>;
  readonly operands: readonly string[];
}

type Token = NonNullable<ReturnType<typeof parseArgs>["tokens"]>[number];
type OptionToken = Extract<Token, { kind: "option" }>;

const HELP = { flag: "--help", short: "-h", type: "switch", help: "" } as const;

/**
 * Reads the arguments of a command by its rows of the option table. node:util splits them (`--a=b`,
 * `--`), the table checks the values.
 *
 * @throws UsageError for the first value that is not allowed, else the first flag that is not known,
 * else operands that are too many.
 */
export function readFlags(name: CommandName, args: readonly string[]): Typed {
  const flags = spellings(name);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries([...flags].map(([spelling, { flag }]) => optionOf(spelling, flag))),
    strict: false,
    tokens: true,
  });
  const given: Record<string, unknown> = {};
  const unknown: OptionToken[] = [];
  const operands: string[] = [];
  for (const token of tokens) {
    const arg = args[token.index] ?? "";
    if (token.kind === "positional" || isNumber(arg)) operands.push(arg);
    else if (token.kind === "option") {
      const found = flags.get(token.rawName);
      if (
        found === undefined || (found.flag.type === "switch" && token.inlineValue) ||
        isLongAfterOneDash(arg, flags)
      ) {
        unknown.push(token);
      } else given[found.key] = valueOf(found.flag, token, given[found.key]);
    }
  }
  const [first] = unknown;
  if (first !== undefined) throw unknownFlag(name, args[first.index] ?? "");
  const { operands: spec = [] } = COMMANDS[name];
  const asks = given["help"] === true;
  if (!asks && operands.length > spec.length && !spec.at(-1)?.many) throw tooMany(name);
  return { given, operands };
}

/**
 * An error message with flags spelled as the person typed them: messages are written with the first long
 * spelling, and `--num-steps` or `-m` may have been typed. A flag that was typed in several ways keeps
 * the first long one.
 *
 * @param args of the command, without its name.
 */
export function asTyped(message: string, name: CommandName, args: readonly string[]): string {
  const typed = new Map<Flag, Set<string>>();
  for (const [spelling, { flag }] of spellings(name)) {
    // `-m=x`, `-mx` and `--model=x` begin with the spelling.
    const short = !spelling.startsWith("--");
    const has = (arg: string) =>
      arg === spelling || arg.startsWith(`${spelling}=`) || short && arg.startsWith(spelling);
    if (args.some(has)) typed.set(flag, (typed.get(flag) ?? new Set()).add(spelling));
  }
  return typed.entries().reduce((text, [{ flag }, [spelling = flag, ...others]]) => {
    if (spelling === flag || others.length > 0) return text;
    return text.replaceAll(new RegExp(`(?<![\\w-])${flag}(?![\\w-])`, "g"), () => spelling);
  }, message);
}

/** The rows of a command by all spellings that they have. */
function spellings(name: CommandName) {
  const rows: [string, Flag][] = [...Object.entries(flagsOf(name)), ["help", HELP]];
  return new Map(
    rows.flatMap(([key, flag]) =>
      spellingsOf(flag).map((spelling) => [spelling, { key, flag }] as const)
    ),
  );
}

/** `-model x` is a slip for `--model x`, not `-m odel`. */
function isLongAfterOneDash(arg: string, flags: ReadonlyMap<string, unknown>): boolean {
  const [name = arg] = arg.split("=");
  return /^-[^-]{2}/.test(name) && flags.has(`-${name}`);
}

/** A spelling as node:util takes it; a short one needs a long name, here one that cannot be typed. */
function optionOf(spelling: string, { type }: Flag) {
  const kind = { type: type === "switch" ? "boolean" : "string" } as const;
  if (spelling.startsWith("--")) return [spelling.slice(2), kind] as const;
  return [` ${spelling}`, { ...kind, short: spelling.slice(1) }] as const;
}

/** `-5` is an operand: no flag is a digit. */
function isNumber(arg: string): boolean {
  return arg.trim() !== "" && Number.isFinite(Number(arg));
}

function valueOf(flag: Flag, { rawName, value }: OptionToken, previous: unknown): unknown {
  if (flag.type === "switch") return true;
  if (value === undefined) {
    throw new UsageError(
      `Cannot use "${rawName}": ${placeholder(flag)} is missing; allowed is ${allowed(flag)}`,
    );
  }
  // node:util takes `-m=x` for the value `=x`.
  const text = rawName.startsWith("--") ? value : value.replace(/^=/, "");
  const read = parseValue(flag, text, rawName);
  if (flag.type === "bias") return Object.assign({}, previous, read);
  return flag.type === "list" ? [...(previous as string[] | undefined ?? []), read] : read;
}

function tooMany(name: CommandName): UsageError {
  const { operands = [] } = COMMANDS[name];
  const most = ["none", "one (quote it)"][operands.length] ??
    operands.map((operand) => operand.name).join(" and ");
  return new UsageError(`Cannot run "${name}": too many arguments, allowed is ${most}`);
}

/** @param typed the argument as typed: it may have a value. */
function unknownFlag(name: CommandName, typed: string): UsageError {
  const [flag = typed] = typed.split("=");
  const knows = (command: CommandName) => spellings(command).has(flag);
  if (knows(name)) return new UsageError(`Cannot use "${typed}": ${flag} takes no value`);
  const near = nearest(flag, [...spellings(name).keys()]);
  const others = (Object.keys(COMMANDS) as CommandName[]).filter(knows);
  // `--steps` is a part of `--num-steps` here, whatever it is elsewhere.
  const part = near.some((name) => name.endsWith(flag.slice(1)));
  if (others.length > 0 && !part) {
    const those = others.join(", ");
    return new UsageError(`Cannot use "${flag}" with ${name}: it is allowed with ${those}`);
  }
  return new UsageError(
    `Cannot use "${flag}": ${name} has no such flag${didYouMean(near)} ` +
      `(eyrie ${name} --help all lists them)`,
  );
}
