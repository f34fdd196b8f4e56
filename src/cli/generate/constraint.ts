import { reason, UsageError } from "../../errors.ts";
import type { PromptInput } from "../../engine/load/text.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { GenerateOptions } from "../options/options.ts";

/** The value of `--json-schema` that is no schema: the output is any JSON object. */
const ANY_OBJECT = "object";

/** A prompt whose answer a grammar covers from its first token: what the template opened is closed. */
export function constrainedPrompt(input: PromptInput, grammar: Grammar | undefined): PromptInput {
  return grammar === undefined || "raw" in input ? input : { ...input, begin: "" };
}

/**
 * What the flags say that the output has to be.
 *
 * @throws UsageError for files that cannot be used.
 */
export function grammarOf(
  { jsonSchema, grammar, regex }: Pick<GenerateOptions, "jsonSchema" | "grammar" | "regex">,
): Grammar | undefined {
  if (jsonSchema === ANY_OBJECT) return { kind: "json object" };
  if (jsonSchema !== undefined) return { kind: "json schema", schema: readSchema(jsonSchema) };
  if (grammar !== undefined) return { kind: "ebnf", text: readText(grammar) };
  return regex === undefined ? undefined : { kind: "regex", pattern: regex };
}

/** The schema itself begins with a brace; anything else is the name of a file. */
function readSchema(given: string): unknown {
  const inline = given.trimStart().startsWith("{");
  try {
    return JSON.parse(inline ? given : readText(given));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const shown = inline ? "" : ` "${given}"`;
    throw new UsageError(`Cannot use the JSON schema${shown}: it is not JSON (${reason(error)})`);
  }
}

function readText(file: string): string {
  try {
    return Deno.readTextFileSync(file);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "no such file" : reason(error);
    throw new UsageError(`Cannot open "${file}": ${why}`, { cause: error });
  }
}

/** Fields of a batch line with the kinds of grammar that they give. */
export const GRAMMAR_FIELDS: readonly string[] = ["json_schema", "json_object", "grammar", "regex"];

/** @param fail throws, with the reason. */
export function grammarOfLine(
  values: Readonly<Record<string, unknown>>,
  fail: (why: string) => never,
): Grammar | undefined {
  const [first, second] = GRAMMAR_FIELDS.filter((field) => values[field] !== undefined);
  if (second !== undefined) fail(`it has ${first} and ${second}, the output has one grammar`);
  const { json_schema: schema, json_object: object, grammar, regex } = values;
  if (schema !== undefined) return { kind: "json schema", schema };
  if (object !== undefined) {
    if (typeof object !== "boolean") fail("json_object is not a boolean");
    return object ? { kind: "json object" } : undefined;
  }
  if (grammar !== undefined) {
    return typeof grammar === "string"
      ? { kind: "ebnf", text: grammar }
      : fail("grammar is not a text");
  }
  if (regex === undefined) return undefined;
  return typeof regex === "string"
    ? { kind: "regex", pattern: regex }
    : fail("regex is not a text");
}

/** The field of a batch line that gives the grammar. */
export function grammarField(grammar: Grammar): Record<string, unknown> {
  switch (grammar.kind) {
    case "json schema":
      return { json_schema: grammar.schema };
    case "json object":
      return { json_object: true };
    case "ebnf":
      return { grammar: grammar.text };
    case "regex":
      return { regex: grammar.pattern };
    case "forms":
      throw new Error("no flag and no line of a batch asks for the forms of a call");
  }
}
