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
