import { isObjectText } from "./object_text.ts";
import type { Tool } from "./tool.ts";

/** What is parsed from a call's text, in order: the name once, then its arguments as JSON in pieces. */
export type BodyEvent =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "arguments"; readonly text: string };

/** Reads the text of one call, a character at a time. */
export interface BodyReader {
  /** "end": this character was its last. "over": the one before was. "bad": it is no call. */
  push(character: string): "more" | "end" | "over" | "bad";
  /** The model has ended its output here: true if the call is whole even so. */
  end?(): boolean;
  /** What was parsed from the characters so far; each part is returned once. */
  take(): BodyEvent[];
}

/** Finds the end of one JSON value that is an object, an array or a string. */
interface ValueEnd {
  /** True at the value's last character. */
  push(character: string): boolean;
  /**
   * The last character as JSON has it: models write line ends and tabs within strings as they are, which no parser of
   * JSON takes.
   */
  readonly written: string;
}

function valueEnd(): ValueEnd {
  let [depth, inString, escaped] = [0, false, false];
  let written = "";
  return {
    get written() {
      return written;
    },
    push(character) {
      // Behind a backslash, the backslash of the escape is there already.
      const isControl = inString && character < " ";
      written = isControl ? JSON.stringify(character).slice(escaped ? 2 : 1, -1) : character;
      if (inString) {
        if (escaped) escaped = false;
        else if (character === "\\") escaped = true;
        else if (character === '"') inString = false;
        return !inString && depth === 0;
      }
      if (character === '"') inString = true;
      else if (character === "{" || character === "[") depth++;
      else if (character === "}" || character === "]") depth--;
      return !inString && depth <= 0;
    },
  };
}

/** JSON whose strings may have control characters, with escapes in their place. */
export function withEscapes(json: string): string {
  const end = valueEnd();
  return Array.from(json, (character) => {
    end.push(character);
    return end.written;
  }).join("");
}

/** Buffers a reader's events: arguments are held until the name is known, and the name until there are arguments. */
export interface Collector {
  readonly named: boolean;
  name(given: string): void;
  arguments(text: string): void;
  take(): BodyEvent[];
}

export function collector(): Collector {
  let name: string | undefined;
  let nameSent = false;
  let held = "";
  return {
    name(given: string) {
      name = given;
    },
    arguments(text: string) {
      held += text;
    },
    get named() {
      return name !== undefined;
    },
    take(): BodyEvent[] {
      if (name === undefined || held === "") return [];
      const taken: BodyEvent[] = [{ kind: "arguments", text: held }];
      if (!nameSent) taken.unshift({ kind: "name", name });
      [nameSent, held] = [true, ""];
      return taken;
    },
  };
}

/** The keys under which models write a call's arguments. */
const ARGUMENT_KEYS = ["arguments", "parameters"];
/** All keys that a call may have. */
const CALL_KEYS = ["name", "type", ...ARGUMENT_KEYS];

/**
 * `{"name": "f", "arguments": {...}}`, in any order; Llama says "parameters".
 *
 * @param of.unmarked the tools. Given if no mark stands before the object: the object is then a call only if it names
 * one of them, and gives arguments or nothing but the name. If there are no tools, any name with arguments is a call.
 */
export function jsonCall({ unmarked }: { readonly unmarked?: readonly Tool[] } = {}): BodyReader {
  const events = collector();
  let expected: "{" | "key" | ":" | "value" | "," = "{";
  let key = "";
  /** The value, and its first character: looking at all of a long value for each next character is quadratic. */
  let [value, first] = ["", ""];
  /** The value is the arguments. */
  let isArguments = false;
  let end: ValueEnd | undefined;
  let given = false;
  /** Whether the object has keys that no call has. */
  let hasOthers = false;

  function mayCall(name: string): boolean {
    return !unmarked || unmarked.length === 0 || unmarked.some((tool) => tool.name === name);
  }

  /** Only the last brace is missing. */
  function isWhole(): boolean {
    return expected === "," && events.named && given;
  }

  /** The value of `key` is whole. */
  function take(): boolean {
    end = undefined;
    expected = ",";
    if (isArguments) {
      // Some models write the arguments as a JSON string that holds the object.
      if (first === '"') {
        const json = withEscapes(textOf(value) ?? "");
        if (!isObjectText(json)) return false;
        events.arguments(json);
      }
      given = true;
    } else if (key === "name") {
      const name = textOf(value);
      if (name === undefined || !mayCall(name)) return false;
      events.name(name);
    }
    return true;
  }

  function pushValue(character: string): "more" | "bad" {
    if (first === "" && isSpace(character)) return "more";
    first ||= character;
    // Arguments are an object.
    if (isArguments && first === "[") return "bad";
    end ??= valueEnd();
    const whole = end.push(character);
    value += end.written;
    if (isArguments && first !== '"') events.arguments(end.written);
    return !whole || take() ? "more" : "bad";
  }

  return {
    take: events.take,
    end: isWhole,
    push(character) {
      if (expected === "value" && !isScalarEnd(first, character)) {
        // A number or a word of no interest, which ends at the next comma or brace.
        if (isScalar(first, character)) {
          first ||= character;
          value += character;
          return isArguments && !"null".startsWith(value) ? "bad" : "more";
        }
        return pushValue(character);
      }
      if (expected === "value") {
        if (key === "name" || (isArguments && value !== "null")) return "bad";
        expected = ",";
      }
      if (expected !== "key" && isSpace(character)) return "more";
      switch (expected) {
        case "{":
          if (character !== "{") return "bad";
          expected = "key";
          key = "";
          return "more";
        case "key":
          return pushKey(character);
        case ":":
          if (character !== ":") return "bad";
          expected = "value";
          [value, first] = ["", ""];
          // What was returned cannot be taken back: of two the first counts.
          isArguments = ARGUMENT_KEYS.includes(key) && !given;
          return "more";
        default:
          if (character === ",") {
            expected = "key";
            key = "";
            return "more";
          }
          // Models forget the last brace.
          if (character !== "}" && isWhole()) return "over";
          if (character !== "}" || !events.named) return "bad";
          if (!given && unmarked && (hasOthers || unmarked.length === 0)) return "bad";
          if (!given) events.arguments("{}");
          return "end";
      }
    },
  };

  function pushKey(character: string): "more" | "bad" {
    if (key === "" && isSpace(character)) return "more";
    if (key === "" && character !== '"') return "bad";
    end ??= valueEnd();
    const whole = end.push(character);
    key += end.written;
    if (!whole) return "more";
    end = undefined;
    key = textOf(key) ?? "";
    if (!CALL_KEYS.includes(key)) hasOthers = true;
    expected = ":";
    return "more";
  }
}

/**
 * Reads a name, a separator and the arguments as a JSON object: `f[ARGS]{...}`.
 *
 * @param of.separators what may stand between name and arguments, besides white space. Behind the last one the
 * arguments may be missing.
 * @param of.prefixes what may stand before the name.
 * @param of.ignored begins a part that is dropped, up to the arguments.
 * @param of.ends texts that never occur before the arguments: with one of them it is no call.
 */
export function namedCall(
  { separators, prefixes = [], ignored, ends = [] }: {
    readonly separators: readonly string[];
    readonly prefixes?: readonly string[];
    readonly ignored?: string;
    readonly ends?: readonly string[];
  },
): BodyReader {
  const events = collector();
  let head = "";
  let end: ValueEnd | undefined;

  /** Takes the name from the text before the arguments; false where there is none. */
  function takeName(text: string): boolean {
    const [named = ""] = ignored === undefined ? [text] : text.split(ignored);
    const name = nameIn(named, separators, prefixes);
    if (name !== undefined) events.name(name);
    return name !== undefined;
  }

  /** Ends a call without arguments: nothing follows the last separator. */
  function endEmpty(): boolean {
    if (!head.trimEnd().endsWith(separators.at(-1) ?? "") || !takeName(head)) return false;
    events.arguments("{}");
    return true;
  }

  return {
    take: events.take,
    end: () => end === undefined && endEmpty(),
    push(character) {
      if (end === undefined && character !== "{") {
        // The next mark begins.
        if ("[<".includes(character) && endEmpty()) return "over";
        head += character;
        const ended = head.length > LONGEST_HEAD || ends.some((mark) => head.endsWith(mark));
        return ended ? "bad" : "more";
      }
      if (end === undefined) {
        if (!takeName(head)) return "bad";
        end = valueEnd();
      }
      const whole = end.push(character);
      events.arguments(end.written);
      return whole ? "end" : "more";
    },
  };
}

const LONGEST_HEAD = 400;

function nameIn(
  head: string,
  separators: readonly string[],
  prefixes: readonly string[],
): string | undefined {
  let name = head;
  for (const separator of [...prefixes, ...separators]) name = name.replaceAll(separator, "\n");
  const words = name.split("\n").map((word) => word.trim()).filter((word) => word !== "");
  return words.length === 1 && isName(words[0] as string) ? words[0] : undefined;
}

/** May a function have this name? */
export function isName(text: string): boolean {
  return /^[\p{L}\p{N}_.:/-]{1,256}$/u.test(text);
}

/**
 * Reads a call as a JSON object or in the family's own syntax; the first character shows which. Models are forced to
 * write an object for a tool whose arguments a grammar cannot express in the family's own syntax.
 *
 * @param skipped characters that may stand before either.
 * @param repeated a mark that may stand there too: models write it twice.
 */
export function eitherCall(
  own: () => BodyReader,
  skipped: RegExp = /\s/,
  repeated: string = "",
): BodyReader {
  let inner: BodyReader | undefined;
  /** The beginning of `repeated`, or of a call. */
  let head = "";
  return {
    take: () => inner?.take() ?? [],
    end: () => inner?.end?.() ?? false,
    push(character) {
      if (inner !== undefined) return inner.push(character);
      if (head === "" && skipped.test(character)) return "more";
      head += character;
      if (head === repeated) head = "";
      if (repeated.startsWith(head)) return "more";
      inner = head.startsWith("{") ? jsonCall() : own();
      for (const each of head.slice(0, -1)) {
        const result = inner.push(each);
        if (result !== "more") return result;
      }
      return inner.push(character);
    },
  };
}

/** The text that a JSON string stands for. */
function textOf(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

function isSpace(character: string): boolean {
  return /\s/.test(character);
}

/** Does a value that is neither object, array nor text begin or go on here? @param first of its characters, or none. */
function isScalar(first: string, character: string): boolean {
  return first === "" ? !/[\s"{[]/.test(character) : !/["{[]/.test(first);
}

function isScalarEnd(first: string, character: string): boolean {
  return first !== "" && !/["{[]/.test(first) && /[\s,}]/.test(character);
}
