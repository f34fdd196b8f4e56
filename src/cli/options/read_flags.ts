import { parseArgs } from "node:util";
import { UsageError } from "../../errors.ts";
import { aliasesOf, type AliasRow, aliasValue, OPERAND_ALIASES, REMOVED } from "./aliases.ts";
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

/** What a flag that stands for an operand accepts. */
const OPERAND = { flag: "", type: "text", help: "" } as const;
const HELP = { flag: "--help", short: "-h", type: "switch", help: "" } as const;

/** A flag whose value was joined from aliases. */
interface Folded {
  /** The flag's name in the program. */
  readonly key: string;
  readonly flag: Flag;
  readonly text: string;
  /** All that was typed for it. */
  readonly typed: string;
}

interface Read extends Typed {
  readonly unknown: readonly OptionToken[];
  readonly folded: readonly Folded[];
}

/**
 * Reads the arguments of a command by its rows of the option table. node:util splits them (`--a=b`, `--`),
 * aliases are replaced by their flags, and the table checks the values.
 *
 * @throws UsageError for the first value that is not allowed, else the first flag that is not known,
 * else operands that are too many.
 */
export function readFlags(name: CommandName, args: readonly string[]): Typed {
  const { given, operands, unknown, folded } = read(name, args);
  const values = { ...given };
  for (const { key, flag, text } of folded) values[key] = parseValue(flag, text);
  const [first] = unknown;
  if (first !== undefined) throw unknownFlag(name, args[first.index] ?? "");
  const { operands: spec = [] } = COMMANDS[name];
  const asks = given["help"] === true;
  if (!asks && operands.length > spec.length && !spec.at(-1)?.many) throw tooMany(name);
  return { given: values, operands };
}

function read(name: CommandName, args: readonly string[]): Read {
  const flags = spellings(name);
  const aliases = aliasesOf(name, flagsOf(name));
  const operandFlags = operandFlagsOf(name);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries([
      ...operandFlags.keys().map((spelling) => optionOf(spelling, false)),
      ...aliases.entries().map(([spelling, { alias }]) => optionOf(spelling, Boolean(alias.bare))),
      ...flags.entries().map(([spelling, { flag }]) => optionOf(spelling, flag.type === "switch")),
    ]),
    strict: false,
    tokens: true,
  });
  const given: Record<string, unknown> = {};
  const texts: Record<string, string> = {};
  const unknown: OptionToken[] = [];
  const operands: string[] = [];
  const flagged: { readonly at: number; readonly texts: readonly string[] }[] = [];
  const joined: { readonly row: AliasRow; readonly value: string; readonly typed: string }[] = [];
  for (const token of tokens) {
    const arg = args[token.index] ?? "";
    if (token.kind === "positional" || isNumber(arg)) operands.push(arg);
    else if (token.kind === "option") {
      const operand = operandFlags.get(token.rawName);
      if (operand !== undefined) {
        flagged.push({ at: operand.at, texts: operand.read(token) });
        continue;
      }
      const found = flags.get(token.rawName);
      const row = aliases.get(token.rawName);
      const meant = row?.alias.when === undefined || row.alias.when(token.value ?? "")
        ? row
        : undefined;
      const { key, flag } = meant ?? found ?? {};
      const bare = meant ? meant.alias.bare : flag?.type === "switch";
      if (
        key === undefined || flag === undefined || (bare && token.inlineValue) ||
        isLongAfterOneDash(arg, flags)
      ) {
        unknown.push(token);
        continue;
      }
      const text = bare ? "" : textOf(flag, token);
      const value = meant ? aliasValue(meant.alias, text) : text;
      if (meant?.alias.value === undefined || flag.type === "list") {
        texts[key] = text;
        given[key] = valueOf(flag, value, token.rawName, given[key]);
      } else {
        joined.push({ row: meant, value, typed: `${token.rawName} ${text}`.trim() });
      }
    }
  }
  for (const { at, texts } of flagged) operands.splice(at, 0, ...texts);
  return { given, operands, unknown, folded: fold(joined, texts) };
}

/** Puts the values of aliases together, with what was typed for the flag itself. @throws UsageError */
function fold(
  aliases: readonly { readonly row: AliasRow; readonly value: string; readonly typed: string }[],
  texts: Readonly<Record<string, string>>,
): Folded[] {
  const folded = new Map<string, Folded>();
  for (const { row: { key, flag, alias }, value, typed } of aliases) {
    const own = texts[key];
    const before = folded.get(key) ??
      (own === undefined ? undefined : { key, flag, text: own, typed: `${flag.flag} ${own}` });
    const text = before === undefined || alias.join === undefined
      ? value
      : alias.join(before.text, value);
    if (text === undefined) {
      throw new UsageError(
        `Cannot use "${typed}" with "${before?.typed}": it means ${flag.flag} ${value}`,
      );
    }
    folded.set(key, { key, flag, text, typed: before ? `${before.typed} ${typed}` : typed });
  }
  return [...folded.values()];
}

/**
 * Spells the flags in an error message as the user typed them. Messages are written with a flag's first long
 * spelling, but the user may have typed `--speculative-num-steps` or `-m`. A flag that was typed in several
 * spellings keeps the first long one.
 *
 * @param args of the command, without its name.
 */
export function asTyped(message: string, name: CommandName, args: readonly string[]): string {
  const typed = new Map<Flag, Set<string>>();
  const renamed = aliasesOf(name, flagsOf(name)).entries()
    .filter(([, { alias }]) => alias.value === undefined && alias.when === undefined);
  for (const [spelling, { flag }] of [...spellings(name), ...renamed]) {
    // `-m=x`, `-mx` and `--model=x` begin with the spelling.
    const short = !spelling.startsWith("--");
    const has = (arg: string) =>
      arg === spelling || arg.startsWith(`${spelling}=`) || short && arg.startsWith(spelling);
    if (args.some(has)) typed.set(flag, (typed.get(flag) ?? new Set()).add(spelling));
  }
  const unfolded = foldedIn(name, args).reduce(
    (text, { flag, text: value, typed }) => text.replaceAll(`${flag.flag} ${value}`, () => typed),
    message,
  );
  return typed.entries().reduce((text, [{ flag }, [spelling = flag, ...others]]) => {
    if (spelling === flag || others.length > 0) return text;
    return text.replaceAll(new RegExp(`(?<![\\w-])${flag}(?![\\w-])`, "g"), () => spelling);
  }, unfolded);
}

/** The flags that were joined from aliases; none where the arguments cannot be read. */
function foldedIn(name: CommandName, args: readonly string[]): readonly Folded[] {
  try {
    return read(name, args).folded;
  } catch (error) {
    if (error instanceof UsageError) return [];
    throw error;
  }
}

/** Flags of a command that stand for an operand: the operand's place, and how its texts are read. */
function operandFlagsOf(name: CommandName) {
  const rows = Object.entries(OPERAND_ALIASES).filter(([, { command }]) => command === name);
  return new Map(rows.map(([spelling, { operand, many }]) => {
    const at = COMMANDS[name].operands?.findIndex((each) => each.name === operand) ?? 0;
    const read = (token: OptionToken): string[] => {
      const text = textOf(OPERAND, token);
      if (text !== "") return many ? text.split(",").map((part) => part.trim()) : [text];
      throw new UsageError(`Cannot use "${spelling} ": allowed is ${allowed(OPERAND)}`);
    };
    return [spelling, { at, read }];
  }));
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
function optionOf(spelling: string, bare: boolean) {
  const kind = { type: bare ? "boolean" : "string" } as const;
  if (spelling.startsWith("--")) return [spelling.slice(2), kind] as const;
  return [` ${spelling}`, { ...kind, short: spelling.slice(1) }] as const;
}

/** `-5` is an operand: no flag is a digit. */
function isNumber(arg: string): boolean {
  return arg.trim() !== "" && Number.isFinite(Number(arg));
}

/** The text of a flag's value. @throws UsageError where there is none */
function textOf(flag: Flag, { rawName, value }: OptionToken): string {
  if (value === undefined) {
    throw new UsageError(
      `Cannot use "${rawName}": ${placeholder(flag)} is missing; allowed is ${allowed(flag)}`,
    );
  }
  // node:util takes `-m=x` for the value `=x`.
  return rawName.startsWith("--") ? value : value.replace(/^=/, "");
}

function valueOf(flag: Flag, text: string, spelled: string, previous: unknown): unknown {
  if (flag.type === "switch") return true;
  const read = parseValue(flag, text, spelled);
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
  const knows = (command: CommandName) =>
    spellings(command).has(flag) || aliasesOf(command, flagsOf(command)).has(flag) ||
    OPERAND_ALIASES[flag]?.command === command;
  if (knows(name)) return new UsageError(`Cannot use "${typed}": ${flag} takes no value`);
  const instead = REMOVED[flag];
  if (instead !== undefined) {
    return new UsageError(`Cannot use "${flag}": the flag was removed; ${instead}`);
  }
  const near = nearest(flag, [...spellings(name).keys()]);
  const commands = Object.keys(COMMANDS) as CommandName[];
  const own = commands.filter((command) => spellings(command).has(flag));
  const others = own.length > 0 ? own : commands.filter(knows);
  if (others.length > 0) {
    const those = others.join(", ");
    return new UsageError(`Cannot use "${flag}" with ${name}: it is allowed with ${those}`);
  }
  return new UsageError(
    `Cannot use "${flag}": ${name} has no such flag${didYouMean(near)} ` +
      `(eyrie ${name} --help all lists them)`,
  );
}
