/** Ids of batch lines: they come back as they were sent, digit by digit. */

/** A number that JavaScript would write differently, as `9007199254740993` or `1.0`; `rawJSON` keeps its literal. */
export interface LiteralNumber {
  readonly rawJSON: string;
}

export type BatchId = string | number | LiteralNumber;

/** JSON.parse and JSON.rawJSON with the `context` argument of the reviver, which TypeScript does not declare yet. */
const LITERAL_JSON = JSON as unknown as {
  parse(
    text: string,
    reviver: (this: object, key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): LiteralNumber;
};

/** Parses a line; `id` is the literal of the object's own field `id`, where that is a number. */
export function parseWithId(text: string): { readonly value: unknown; readonly id?: BatchId } {
  const literals = new Map<unknown, string>();
  const value = LITERAL_JSON.parse(text, function (key, value, { source }) {
    if (key === "id" && typeof value === "number" && source !== undefined) {
      literals.set(this, source);
    }
    return value;
  });
  const literal = literals.get(value);
  if (literal === undefined) return { value };
  const number = Number(literal);
  return { value, id: String(number) === literal ? number : LITERAL_JSON.rawJSON(literal) };
}

/** The text by which ids are compared: a number equals the string of its digits. */
export function idText(id: BatchId): string {
  return typeof id === "object" ? id.rawJSON : String(id);
}
