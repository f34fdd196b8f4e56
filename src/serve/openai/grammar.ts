import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { Ask } from "../answers/ask.ts";
import { invalid } from "../http/errors.ts";
import type { FormatField } from "./chat_schema.ts";

/** The grammar that a `response_format` asks for; undefined for plain text. */
export function formatGrammar(format: FormatField): Grammar | undefined {
  if (format.type === "json_object") {
    const { schema } = format;
    const any = Object.keys(schema ?? {}).length === 0;
    return any ? { kind: "json object" } : { kind: "json schema", schema };
  }
  if (format.type !== "json_schema") return undefined;
  return { kind: "json schema", schema: format.json_schema.schema ?? {} };
}

/**
 * The one grammar that the fields give, with its field's name.
 *
 * @throws ApiError (400) where two fields give one: an output has one grammar.
 */
export function onlyGrammar(
  given: readonly (readonly [field: string, grammar: Grammar | undefined])[],
): Pick<Ask, "grammar" | "grammarField"> {
  const [first, second] = given.filter(([, grammar]) => grammar !== undefined);
  if (first && second) {
    const [field] = second;
    const message = `Cannot use "${field}" with "${first[0]}": the output has one grammar`;
    throw invalid(message, field);
  }
  return { grammar: first?.[1], grammarField: first?.[0] };
}
