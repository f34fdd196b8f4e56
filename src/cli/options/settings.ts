/** Flags that are set outside the command line: in the config file, and in EYRIE_* variables. */
import { reason, UsageError } from "../../errors.ts";
import { type Env, userFolder } from "../../user_folders.ts";
import { ALIASES, aliasesOf, type AliasRow, aliasValue, REMOVED } from "./aliases.ts";
import { COMMANDS, flagsOf } from "./commands.ts";
import type { CommandName } from "./command.ts";
import { allowed, type Flag, type FlagTable, parseValue } from "./flag.ts";
import { didYouMean, nearest } from "./nearest.ts";

/** What is set outside the command line. */
export interface Settings {
  readonly env: Env;
  /** The config file's path, undefined where there is no home folder. */
  readonly path: string | undefined;
  /** The config file's text, undefined where there is none. */
  readonly text: string | undefined;
}

/** Nothing is set. */
export const NO_SETTINGS: Settings = { env: () => undefined, path: undefined, text: undefined };

/** One value, and how messages name the place it was read from. */
interface Setting {
  readonly value: unknown;
  /** `"/home/me/.config/eyrie.json": port`, or the variable in quotes. */
  readonly place: string;
}

/** Values by the long spelling of their flag, without dashes. */
type Source = ReadonlyMap<string, Setting>;

/** The aliases of a command by their spelling without dashes. */
type Aliases = ReadonlyMap<string, AliasRow>;

const CONFIG = "EYRIE_CONFIG";
/** Variables that are read where they are used. They too take precedence over the config file. */
const READ_ELSEWHERE = ["EYRIE_API_KEY", "EYRIE_WEBGPU"];
/** Flags that the file sets for its own model only: they are ignored where another model is chosen. */
const OF_MODEL = ["draft", "donor", "draftRopeTheta", "tokenMap", "servedModelName"];
/** Drafts that go with any model. */
const ANY_MODEL: readonly unknown[] = ["auto", "none"];

/**
 * Reads the config file: the one that EYRIE_CONFIG names, else `eyrie.json` in XDG_CONFIG_HOME or
 * `~/.config`, on Windows in APPDATA.
 *
 * @throws UsageError where it cannot be read, or EYRIE_CONFIG names none.
 */
export function readSettings(env: Env, os: typeof Deno.build.os): Settings {
  const path = configPath(env, os);
  if (path === undefined) return { env, path, text: undefined };
  try {
    return { env, path, text: Deno.readTextFileSync(path) };
  } catch (error) {
    const { NotFound, NotADirectory, NotCapable } = Deno.errors;
    const absent = [NotFound, NotADirectory].some((kind) => error instanceof kind);
    const named = Boolean(env(CONFIG));
    // A program that may not read the file runs without it, unless EYRIE_CONFIG names it.
    if (!named && (absent || error instanceof NotCapable)) return { env, path, text: undefined };
    const why = absent ? "no such file" : reason(error);
    throw new UsageError(`Cannot read "${path}"${named ? ` of ${CONFIG}` : ""}: ${why}`, {
      cause: error,
    });
  }
}

/** Where the config file is looked for. */
export function configPath(env: Env, os: typeof Deno.build.os): string | undefined {
  const named = env(CONFIG);
  if (named) return named;
  const folder = userFolder("config", env, os);
  return folder && `${folder}/eyrie.json`;
}

/**
 * Adds settings to what was typed: variables first, then the file, both only for flags that the command has
 * and that are not set yet. A setting that contradicts what was typed or what has precedence is left out, and
 * so is the file's draft where another model is used.
 *
 * @param given what was typed.
 * @param check throws a UsageError for flags that contradict each other.
 * @throws UsageError for a key that is no flag of any command, and for a value that is not allowed.
 */
export function withSettings(
  name: CommandName,
  given: Readonly<Record<string, unknown>>,
  settings: Settings,
  check: (given: Readonly<Record<string, unknown>>) => void,
): Readonly<Record<string, unknown>> {
  const flags = flagsOf(name);
  const aliases = new Map(
    aliasesOf(name, flags).entries().map(([spelling, row]) => [spelling.slice(2), row]),
  );
  const variables = variablesOf(flags, aliases, settings.env);
  const file = fileOf(settings, flags, aliases);
  const merged = addFitting(given, variables, check);
  return addFitting(merged, withoutForeign(file, merged), check);
}

/** How many flags the config file sets. @throws UsageError as `withSettings` */
export function countSettings({ path, text }: Settings): number {
  return text === undefined || path === undefined ? 0 : Object.keys(configOf(path, text)).length;
}

/**
 * Removes what the file sets for its own model only (a draft, and for a server the model's name) where
 * another model is used.
 */
function withoutForeign(
  file: Readonly<Record<string, unknown>>,
  { model, remote }: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const own = model === undefined && remote === undefined && file["model"] !== undefined;
  const foreign = (key: string, value: unknown) =>
    key === "model" && remote !== undefined ||
    !own && OF_MODEL.includes(key) && !ANY_MODEL.includes(value);
  return Object.fromEntries(Object.entries(file).filter(([key, value]) => !foreign(key, value)));
}

/** Adds the settings that fit, until none is added any more: one setting may need another one first. */
function addFitting(
  given: Readonly<Record<string, unknown>>,
  source: Readonly<Record<string, unknown>>,
  check: (given: Readonly<Record<string, unknown>>) => void,
): Readonly<Record<string, unknown>> {
  const waiting = new Set(Object.keys(source).filter((key) => given[key] === undefined));
  let merged = given;
  for (let before = -1; before !== waiting.size;) {
    before = waiting.size;
    for (const key of waiting) {
      const more = { ...merged, [key]: source[key] };
      if (!fits(more, check)) continue;
      merged = more;
      waiting.delete(key);
    }
  }
  return merged;
}

function fits(
  given: Readonly<Record<string, unknown>>,
  check: (given: Readonly<Record<string, unknown>>) => void,
): boolean {
  try {
    check(given);
    return true;
  } catch (error) {
    if (error instanceof UsageError) return false;
    throw error;
  }
}

/** The command's flags that variables set, by their names in the program: EYRIE_TOP_P is --top-p. */
function variablesOf(flags: FlagTable, aliases: Aliases, env: Env): Record<string, unknown> {
  const set = new Map<string, Setting>();
  for (const spelling of [...Object.values(flags).map(longName), ...aliases.keys()]) {
    const name = `EYRIE_${spelling.toUpperCase().replaceAll("-", "_")}`;
    const value = env(name);
    if (!value || READ_ELSEWHERE.includes(name)) continue;
    set.set(spelling, { value, place: `"${name}"` });
  }
  return valuesOf(flags, aliases, set);
}

/** The command's flags that the file sets, by their names in the program. */
function fileOf(
  { path, text, env }: Settings,
  flags: FlagTable,
  aliases: Aliases,
): Record<string, unknown> {
  if (text === undefined || path === undefined) return {};
  const set = new Map<string, Setting>();
  for (const [key, value] of Object.entries(configOf(path, text))) {
    const spelling = key.replaceAll("_", "-");
    const name = `EYRIE_${spelling.toUpperCase().replaceAll("-", "_")}`;
    if (READ_ELSEWHERE.includes(name) && env(name)) continue;
    set.set(spelling, { value, place: `"${path}": ${key}` });
  }
  return valuesOf(flags, aliases, set);
}

/** The file's keys, all of which are flags. @throws UsageError */
function configOf(path: string, text: string): Record<string, unknown> {
  if (text.trim() === "") return {};
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`Cannot read "${path}": not JSON (${reason(error)})`, { cause: error });
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new UsageError(
      `Cannot read "${path}": it is not a JSON object of flags and their values`,
    );
  }
  const names = (Object.keys(COMMANDS) as CommandName[]).flatMap((name) =>
    Object.values(flagsOf(name)).map(longName)
  );
  const known = new Set([...names, ...Object.keys(ALIASES).map((spelling) => spelling.slice(2))]);
  const key = Object.keys(json).find((key) => !known.has(key.replaceAll("_", "-")));
  if (key === undefined) return json as Record<string, unknown>;
  const instead = REMOVED[`--${key.replaceAll("_", "-")}`];
  if (instead !== undefined) {
    throw new UsageError(`Cannot use "${path}": the flag ${key} was removed; ${instead}`);
  }
  const near = didYouMean(nearest(key, [...new Set(names)]));
  throw new UsageError(`Cannot use "${path}": ${key} is no flag of any command${near}`);
}

/** Checked values by the flags' names in the program. */
function valuesOf(flags: FlagTable, aliases: Aliases, set: Source): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(flags).flatMap(([key, flag]) => {
      const found = settingOf(flag, aliases, set);
      const value = found && valueOf(flag, found);
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

/** The setting of a flag: by its own spelling, or else joined from its aliases. */
function settingOf(flag: Flag, aliases: Aliases, set: Source): Setting | undefined {
  const own = flag.measured ? undefined : set.get(longName(flag));
  const meant = aliases.get(longName(flag))?.alias.when?.(String(own?.value));
  if (own !== undefined && !meant) return own;
  const folded = [...aliases].flatMap(([spelling, { alias, flag: row }]) => {
    const setting = row === flag ? set.get(spelling) : undefined;
    const on = setting && (!alias.bare || valueOf(SWITCH, setting) !== undefined);
    if (!on || alias.when?.(String(setting.value)) === false) return [];
    if (alias.value === undefined) return [{ alias, setting }];
    const value = aliasValue(alias, String(setting.value));
    return [{ alias, setting: { value, place: setting.place } }];
  });
  const [first, ...rest] = folded;
  return first && {
    place: first.setting.place,
    value: rest.reduce(
      (before, { alias, setting: { value } }) =>
        alias.join?.(String(before), String(value)) ?? before,
      first.setting.value,
    ),
  };
}

/** The value, or undefined for a switch that is off. @throws UsageError naming the place. */
function valueOf(flag: Flag, { value, place }: Setting): unknown {
  const refuse = () => {
    const kind = flag.type === "switch" ? "true or false" : allowed(flag);
    return new UsageError(
      `Cannot use ${place}: it is ${JSON.stringify(value)}, allowed is ${kind}`,
    );
  };
  if (flag.type === "switch") {
    if (![true, false, "true", "false", "1", "0"].includes(value as string | boolean)) {
      throw refuse();
    }
    return ["true", "1", true].includes(value as string | boolean) ? true : undefined;
  }
  const texts = textsOf(flag, value);
  if (texts === undefined) throw refuse();
  try {
    const read = texts.map((text) => parseValue(flag, text));
    return flag.type === "list" ? read : read[0];
  } catch (error) {
    throw error instanceof UsageError ? refuse() : error;
  }
}

/** The texts that a user would type for a JSON value: several for a flag that may be repeated. */
function textsOf(flag: Flag, value: unknown): string[] | undefined {
  const one = (part: unknown): part is string | number =>
    typeof part === "string" || typeof part === "number";
  if (one(value)) return [String(value)];
  if (Array.isArray(value) && value.every(one)) {
    if (flag.type === "list") return value.map(String);
    return flag.type === "axis" || flag.type === "names" ? [value.join(",")] : undefined;
  }
  const pairs = flag.type === "bias" && typeof value === "object" && value !== null;
  return pairs ? [JSON.stringify(value)] : undefined;
}

const SWITCH = { flag: "", type: "switch", help: "" } as const;

/** The long spelling without its dashes. */
function longName({ flag }: Flag): string {
  return flag.slice(2);
}
