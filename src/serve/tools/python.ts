import { numberLiteral } from "../../text/number_literals.ts";
import { type BodyReader, collector, isName } from "./body.ts";

/** `f(a=1, b="x", c=[True, None])`: the arguments as JSON, returned together at the call's end. */
export function pythonCall(): BodyReader {
  const events = collector();
  let name: string | undefined;
  /** The text of the arguments, and only its end (`tail`), in which quotes are searched: `held` may be long. */
  let [held, tail] = ["", ""];
  let depth = 0;
  /** What ends the string that is being read. */
  let quote: string | undefined;
  /** Lengths of `held` where the last string began, and behind its quote or its last escape. */
  let [begun, from] = [0, 0];
  let escaped = false;

  function readString(character: string, end: string): void {
    if (escaped) [escaped, from] = [false, held.length];
    else if (character === "\\") escaped = true;
    else if (tail.endsWith(end) && held.length >= from + end.length) quote = undefined;
  }

  function beginString(character: string): void {
    // Behind an empty string the same quote makes it one in three quotes.
    const isThird = held.length === begun + 3 && tail.endsWith(character.repeat(3));
    quote = isThird ? character.repeat(3) : character;
    if (!isThird) begun = held.length - 1;
    from = held.length;
  }

  function finish(): "end" | "bad" {
    const json = keywords(held);
    if (json === undefined) return "bad";
    events.name(name as string);
    events.arguments(json);
    return "end";
  }

  return {
    take: events.take,
    push(character) {
      if (name === undefined) {
        if (character !== "(") {
          held += character;
          return held.length > LONGEST_NAME || character === ")" ? "bad" : "more";
        }
        name = held.trim();
        held = "";
        return isName(name) ? "more" : "bad";
      }
      if (quote === undefined && depth === 0 && character === ")") return finish();
      held += character;
      tail = (tail + character).slice(-LONGEST_QUOTE);
      if (quote !== undefined) readString(character, quote);
      else if (character === '"' || character === "'") beginString(character);
      else if ("([{".includes(character)) depth++;
      else if (")]}".includes(character)) depth--;
      return depth < 0 ? "bad" : "more";
    },
  };
}

const LONGEST_NAME = 400;
const LONGEST_QUOTE = 3;

/** JSON of a Python literal; undefined for what is none. Numbers stay as they are written. */
export function pythonValue(text: string): string | undefined {
  return parsed(text, (reader) => {
    const json = value(reader);
    space(reader);
    return json;
  });
}

/** JSON of `a=1, b="x"`; undefined for what is no list of arguments with names. */
function keywords(text: string): string | undefined {
  return parsed(text, (reader) => {
    const members: string[] = [];
    for (;;) {
      space(reader);
      if (reader.at === text.length) return `{${members.join(", ")}}`;
      const key = match(reader, /[\p{L}_][\p{L}\p{N}_-]*/uy);
      space(reader);
      expect(reader, "=");
      members.push(`${JSON.stringify(key)}: ${value(reader)}`);
      space(reader);
      if (reader.at < text.length) expect(reader, ",");
    }
  });
}

/** A call as Python has it. @param given its arguments, an object of JSON. */
export function pythonText(name: string, given: unknown): string {
  const members = Object.entries(given ?? {});
  return `${name}(${members.map(([key, each]) => `${key}=${literalOf(each)}`).join(", ")})`;
}

function literalOf(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literalOf).join(", ")}]`;
  if (typeof value !== "object") return numberLiteral(value) ?? JSON.stringify(value);
  const members = Object.entries(value);
  return `{${
    members.map(([key, each]) => `${JSON.stringify(key)}: ${literalOf(each)}`).join(", ")
  }}`;
}

interface Reader {
  readonly text: string;
  at: number;
}

class NotPython extends Error {}

function parsed(text: string, read: (reader: Reader) => string): string | undefined {
  const reader = { text, at: 0 };
  try {
    const json = read(reader);
    return reader.at === text.length ? json : undefined;
  } catch (error) {
    if (error instanceof NotPython || error instanceof RangeError) return undefined;
    throw error;
  }
}

const WORDS: Readonly<Record<string, string>> = {
  True: "true",
  true: "true",
  False: "false",
  false: "false",
  None: "null",
  null: "null",
};

const NUMBER = /[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?/y;

/** The beginning of a string. */
const QUOTE = /[rRuU]?(?:"""|'''|"|')/y;

function value(reader: Reader): string {
  space(reader);
  const character = reader.text[reader.at] ?? "";
  if (isString(reader)) return JSON.stringify(strings(reader));
  if (character === "[") return items(reader, "]");
  if (character === "(") return items(reader, ")");
  if (character === "{") return members(reader);
  if (/[-+.\d]/.test(character)) {
    const number = match(reader, NUMBER).replaceAll("_", "");
    const isJson = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(number);
    return isJson ? number : JSON.stringify(Number(number));
  }
  return WORDS[match(reader, /\w+/y)] ?? fail();
}

function items(reader: Reader, close: string): string {
  reader.at++;
  const values: string[] = [];
  for (;;) {
    space(reader);
    if (take(reader, close)) return `[${values.join(", ")}]`;
    values.push(value(reader));
    space(reader);
    if (reader.text[reader.at] !== close) expect(reader, ",");
  }
}

function members(reader: Reader): string {
  reader.at++;
  const values: string[] = [];
  for (;;) {
    space(reader);
    if (take(reader, "}")) return `{${values.join(", ")}}`;
    const key = value(reader);
    space(reader);
    expect(reader, ":");
    const name = key.startsWith('"') ? key : JSON.stringify(key);
    values.push(`${name}: ${value(reader)}`);
    space(reader);
    if (reader.text[reader.at] !== "}") expect(reader, ",");
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "/": "/",
};

function isString({ text, at }: Reader): boolean {
  QUOTE.lastIndex = at;
  return QUOTE.test(text);
}

/** Strings that follow each other are one. */
function strings(reader: Reader): string {
  let text = "";
  while (isString(reader)) {
    text += string(reader);
    space(reader);
  }
  return text;
}

function string(reader: Reader): string {
  const begin = match(reader, QUOTE);
  const quote = begin.replace(/^\w/, "");
  const isRaw = /^r/i.test(begin);
  let text = "";
  for (;;) {
    if (reader.text.startsWith(quote, reader.at)) {
      reader.at += quote.length;
      return text;
    }
    const character = reader.text[reader.at++] ?? fail();
    if (character !== "\\") text += character;
    else text += isRaw ? character + (reader.text[reader.at++] ?? fail()) : escape(reader);
  }
}

function escape(reader: Reader): string {
  const code = /[xuU]/.exec(reader.text[reader.at] ?? "")?.[0];
  if (code !== undefined) {
    reader.at++;
    const length = { x: 2, u: 4, U: 8 }[code] as number;
    const digits = reader.text.slice(reader.at, reader.at + length);
    if (!/^[\da-fA-F]+$/.test(digits) || digits.length < length) fail();
    reader.at += length;
    const point = parseInt(digits, 16);
    return point > 0x10ffff ? fail() : String.fromCodePoint(point);
  }
  const character = reader.text[reader.at++] ?? fail();
  // Python leaves an escape that it does not know as it is.
  return ESCAPES[character] ?? `\\${character}`;
}

function space(reader: Reader): void {
  while (/\s/.test(reader.text[reader.at] ?? "")) reader.at++;
}

function take(reader: Reader, character: string): boolean {
  if (reader.text[reader.at] !== character) return false;
  reader.at++;
  return true;
}

function expect(reader: Reader, character: string): void {
  if (!take(reader, character)) fail();
}

/** @param pattern sticky. */
function match(reader: Reader, pattern: RegExp): string {
  pattern.lastIndex = reader.at;
  const [found] = pattern.exec(reader.text) ?? fail();
  reader.at += found.length;
  return found;
}

function fail(): never {
  throw new NotPython();
}
