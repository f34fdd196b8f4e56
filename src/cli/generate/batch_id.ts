import { LITERAL_JSON, type LiteralNumber } from "../../text/number_literals.ts";

/** Ids of batch lines: they come back as they were sent, digit by digit. */

export type BatchId = string | number | LiteralNumber;

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
