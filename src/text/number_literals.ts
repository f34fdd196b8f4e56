import { isObject } from "../objects.ts";

/** A number that JavaScript would write differently, as `9007199254740993` or `1.0`; `rawJSON` keeps its literal. */
export interface LiteralNumber {
  readonly rawJSON: string;
}

/** JSON.parse and JSON.rawJSON with the `context` argument of the reviver, which TypeScript does not declare yet. */
export const LITERAL_JSON = JSON as unknown as {
  parse(
    text: string,
    reviver: (this: object, key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): LiteralNumber;
};

/**
 * Before the literal of a number that JavaScript would write differently, as `9007199254740993` or `1.0`: such a
 * number is a text in the arguments of a call, because no object that keeps a literal can be sent to another thread.
 * A noncharacter (Unicode 23.7), as in user_text.ts, which no readable text contains.
 */
const MARK = "\ufdd2";
const MARKS = new RegExp(`^${MARK}+`);
const MARKED = new RegExp(`^${MARK}(-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)$`);

/** JSON.parse, with the mark and the literal in place of such numbers. Texts that begin with the mark lose it. */
export function parseWithLiterals(text: string): unknown {
  return LITERAL_JSON.parse(text, (_, value, { source }) => {
    if (typeof value === "string") return value.replace(MARKS, "");
    return typeof value === "number" && String(value) !== source ? `${MARK}${source}` : value;
  });
}

/**
 * As `parseWithLiterals` at `path` of the value and inside, and as JSON.parse elsewhere; `*` is any key or index.
 *
 * @throws SyntaxError
 */
export function parseWithLiteralsAt(text: string, path: readonly string[]): unknown {
  return numbersOutside(parseWithLiterals(text), path);
}

/** The value with numbers in place of their literals, except at `path` and inside; undefined: everywhere. */
function numbersOutside(value: unknown, path: readonly string[] | undefined): unknown {
  if (path?.length === 0) return value;
  const inside = (key: string) => [key, "*"].includes(path?.[0] ?? "") ? path?.slice(1) : undefined;
  if (Array.isArray(value)) return value.map((each) => numbersOutside(each, inside("*")));
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, numbersOutside(each, inside(key))]),
    );
  }
  const literal = numberLiteral(value);
  return literal === undefined ? value : Number(literal);
}

/**
 * JSON.parse; JSON.stringify writes the value's numbers with the literals that they have in `text`.
 *
 * @throws SyntaxError
 */
export function parseToWrite(text: string): unknown {
  return LITERAL_JSON.parse(text, (_, value, { source }) => {
    return typeof value === "number" && source !== undefined && String(value) !== source
      ? LITERAL_JSON.rawJSON(source)
      : value;
  });
}

/** The literal of a number in a value that `parseWithLiterals` gave; undefined for anything else. */
export function numberLiteral(value: unknown): string | undefined {
  return typeof value === "string" ? MARKED.exec(value)?.[1] : undefined;
}

/** JSON.stringify of a value that `parseWithLiterals` gave. */
export function textWithLiterals(value: unknown): string {
  return JSON.stringify(value, (_, each) => {
    const literal = numberLiteral(each);
    return literal === undefined ? each : LITERAL_JSON.rawJSON(literal);
  });
}
