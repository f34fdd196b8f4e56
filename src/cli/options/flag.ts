import { parseAxis } from "../../measure/axes.ts";
import { UsageError } from "../../errors.ts";
import { decimal } from "./decimal.ts";
import { type LogitBias, MAX_BIAS, parseBias } from "./logit_bias.ts";

interface Named {
  /** Long spelling with its dashes. */
  readonly flag: string;
  /** A spelling of one letter, `-m`. */
  readonly short?: string;
  readonly help: string;
  /** Listed by `--help`, which leaves others to `--help all` where a command has many. */
  readonly common?: true;
  /** One use of the flag, as typed. */
  readonly example?: string;
  /**
   * The flag lists what a command measures. A setting of this name in a config file or a variable is meant as
   * the single value for other commands, so it does not set the list. An older name of the flag does.
   */
  readonly measured?: true;
  /** What happens without the flag, where that is not a plain value. */
  readonly absent?: string;
}

interface NumberFlag extends Named {
  readonly type: "number" | "integer";
  readonly min: number;
  readonly max: number;
  /** `min` itself is not allowed. */
  readonly above?: true;
  readonly default?: number;
}

interface Checked extends Named {
  /** Whether a text is allowed; default: all but the empty one are. */
  readonly valid?: (text: string) => boolean;
  /** What is allowed, as a phrase. */
  readonly allows?: string;
}

interface TextFlag extends Checked {
  readonly type: "text" | "model" | "file";
  /** What shells offer to begin with. */
  readonly words?: readonly string[];
}

interface ChoiceFlag extends Named {
  readonly type: "choice";
  readonly choices: readonly string[];
}

/** May be given several times; every value is kept, in order. */
interface ListFlag extends Checked {
  readonly type: "list";
}

/** Numbers with commas between them, and ranges of integers: `1,2,8-16`. */
interface AxisFlag extends Named {
  readonly type: "axis";
  readonly min: number;
  readonly max: number;
  readonly whole: boolean;
  readonly default?: readonly number[];
}

/** Texts with commas between them. */
interface NamesFlag extends Named {
  readonly type: "names";
  /** What shells offer to begin with. */
  readonly words?: readonly string[];
}

interface SwitchFlag extends Named {
  readonly type: "switch";
}

/** May be given several times; the values of all ids are kept. */
interface BiasFlag extends Named {
  readonly type: "bias";
}

/** One row of the option table: all that parsing, help and error messages know about a flag. */
export type Flag =
  | NumberFlag
  | TextFlag
  | ChoiceFlag
  | ListFlag
  | AxisFlag
  | NamesFlag
  | SwitchFlag
  | BiasFlag;

/** A group of flags by the name that their value has in the program. */
export type FlagTable = Readonly<Record<string, Flag>>;

/** The spellings of a flag, a short one first; aliases.ts has others. */
export function spellingsOf({ short, flag }: Flag): string[] {
  return short === undefined ? [flag] : [short, flag];
}

/** The type of the value that a row of the table stands for. */
export type ValueOf<F> = F extends { type: "switch" } ? boolean
  : F extends { type: "list" | "names" } ? readonly string[]
  : F extends { type: "bias" } ? LogitBias
  : F extends { type: "axis" }
    ? F extends { default: readonly number[] } ? readonly number[] : readonly number[] | undefined
  : F extends { type: "choice"; choices: readonly (infer C)[] } ? C | undefined
  : F extends { type: "number" | "integer" }
    ? F extends { default: number } ? number : number | undefined
  : string | undefined;

/** The values of a table, checked and with defaults filled in. */
export type Values<T> = { readonly [K in keyof T]: ValueOf<T[K]> };

/** What a flag accepts, as a phrase: `an integer from 0 to 7`. */
export function allowed(flag: Flag): string {
  switch (flag.type) {
    case "number":
    case "integer": {
      const noun = flag.type === "integer" ? "an integer" : "a number";
      return flag.above
        ? `${noun} above ${flag.min}, at most ${flag.max}`
        : `${noun} from ${flag.min} to ${flag.max}`;
    }
    case "axis": {
      const { min, max, whole } = flag;
      return whole
        ? `integers from ${min} to ${max}, as in 1,2 or 1-4`
        : `numbers from ${min} to ${max}, as in 0,0.7`;
    }
    case "bias":
      return `ID=VALUE with a value from -${MAX_BIAS} to ${MAX_BIAS}, or a JSON object of them`;
    case "names":
      return "names with commas between them";
    case "choice":
      return `one of ${flag.choices.join(", ")}`;
    case "switch":
      return "no value";
    case "model":
      return "a folder or org/name[@revision]";
    case "file":
      return flag.allows ?? "a file";
    case "text":
    case "list":
      return flag.allows ?? "text, not empty";
    default:
      return "text, not empty";
  }
}

/** The placeholder of a flag's value in help: `--top-k INTEGER`; empty for a switch. */
export function placeholder(flag: Flag): string {
  if (flag.type === "switch") return "";
  if (flag.type === "choice") return flag.choices.join("|");
  return { list: "TEXT", axis: "LIST", names: "LIST", bias: "ID=VALUE" }[flag.type as string] ??
    flag.type.toUpperCase();
}

/** Checks one typed value; `spelled` is how the person wrote the flag. */
export function parseValue(
  flag: Flag,
  text: string,
  spelled: string = flag.flag,
): number | string | readonly number[] | readonly string[] | LogitBias {
  const refuse = () =>
    new UsageError(`Cannot use "${spelled} ${text}": allowed is ${allowed(flag)}`);
  if (flag.type === "number" || flag.type === "integer") {
    const value = decimal(text);
    const inside = value <= flag.max && (flag.above ? value > flag.min : value >= flag.min);
    if (!inside || (flag.type === "integer" && !Number.isInteger(value))) throw refuse();
    return value;
  }
  if (flag.type === "axis") {
    const values = parseAxis(text);
    const fits = (value: number) =>
      value >= flag.min && value <= flag.max && (!flag.whole || Number.isInteger(value));
    if (values === undefined || !values.every(fits)) throw refuse();
    return values;
  }
  if (flag.type === "bias") {
    const bias = parseBias(text);
    if (bias === undefined) throw refuse();
    return bias;
  }
  if (flag.type === "names") {
    const names = text.split(",").map((name) => name.trim());
    if (names.includes("")) throw refuse();
    return names;
  }
  if (text === "" || (flag.type === "choice" && !flag.choices.includes(text))) throw refuse();
  if ("valid" in flag && flag.valid?.(text) === false) throw refuse();
  return text;
}
