/** Grammar forms that force calls in the syntax that a family's models use on their own. */
import type { ArgumentSyntax, CallForm } from "../../grammar/rules/grammar.ts";
import { isObject } from "../../objects.ts";
import { excludesObjects } from "./objects.ts";
import type { Tags } from "./tagged.ts";
import type { Tool } from "./tool.ts";
import { argumentTypes, askedOnce, isTextOnly, resolved } from "./values.ts";

/** How a family writes a call: the text around the arguments, and the arguments' syntax. */
export interface NativeSyntax extends Omit<ArgumentSyntax, "texts"> {
  /** @param name of the function. */
  readonly before: (name: string) => string;
  readonly after: string;
  /** Which texts may be JSON in quotes instead; absent: none. */
  readonly json?: "where needed" | "all";
}

/**
 * Values within lists and objects are JSON: Python's but for the words true, false and null, which its readers take.
 */
export const PYTHON_SYNTAX: NativeSyntax = {
  before: (name) => `${name}(`,
  after: ")",
  between: ", ",
  key: ["", "="],
  text: ["", ""],
  value: ["", ""],
  booleans: ["False", "True"],
  ends: [],
  json: "all",
};

/**
 * The syntax of a family that writes a tag for each argument: what `taggedCall` reads by these tags.
 *
 * @param of.line ends the lines of the name and of each value, and a key's where something stands before the value.
 * @param of.after follows the tag that ends the call.
 */
export function taggedSyntax(
  { name, key, value, end, lines = false, after: last }: Tags,
  { line = "\n", after = "" }: { readonly line?: string; readonly after?: string } = {},
): NativeSyntax {
  const own = lines ? "\n" : "";
  const around = [value.open, `${own}${value.close}${line}`] as const;
  return {
    before: (called) => `${name.open}${called}${name.close ?? ""}${line}`,
    after: `${end}${after}`,
    between: "",
    key: [key.open, `${key.close}${value.open === "" ? own : line}`],
    text: around,
    value: around,
    // A text may not contain the other tags either, where they end a value that was not closed.
    ends: [value.close, ...lines ? [key.open] : [], ...last === undefined ? [] : [end]],
  };
}

/**
 * A form for each tool: the family's own syntax, or `otherwise` (a JSON object) where a grammar cannot write the tool's
 * arguments in that syntax. That is so where the schema allows unknown arguments, has an argument name that is no
 * word, restricts a text by more than a list of values, or has more than MAX_ARGUMENTS.
 */
export function nativeForms(
  tools: readonly Tool[],
  syntax: NativeSyntax,
  otherwise: (tool: Tool) => CallForm,
): CallForm[] {
  const { before, after, json, ...of } = syntax;
  return tools.map((tool) => {
    const texts = textsOf(tool, json);
    if (texts === undefined) return otherwise(tool);
    const form = { before: before(tool.name), schema: tool.parameters, after };
    return { ...form, syntax: { ...of, texts } };
  });
}

/** Names of the arguments that are texts; undefined where the arguments cannot be written one by one. */
function textsOf(tool: Tool, json: NativeSyntax["json"]): string[] | undefined {
  const { parameters: root } = tool;
  if (!isObject(root) || excludesObjects(root)) return undefined;
  const { properties, required = [], ...rest } = root;
  if (!isObject(properties) || !Object.keys(rest).every((key) => ROOT_KEYS.includes(key))) {
    return undefined;
  }
  if (rest["additionalProperties"] !== undefined && rest["additionalProperties"] !== false) {
    return undefined;
  }
  const names = Object.keys(properties);
  if (names.length > MAX_ARGUMENTS) return undefined;
  const isKnown = (each: unknown) => typeof each === "string" && names.includes(each);
  if (!Array.isArray(required) || !required.every(isKnown)) return undefined;
  if (!names.every((each) => WORD.test(each))) return undefined;
  if (json === "all") return [];
  const isFreeText = freeTextOf(root);
  const isFree = (each: string) => isFreeText(properties[each]);
  if (json === "where needed") {
    return names.filter((each) => isTextOnly(argumentTypes(tool, each)) && isFree(each));
  }
  const texts = names.filter((each) => argumentTypes(tool, each)?.has("string"));
  return texts.every(isFree) ? texts : undefined;
}

/** Keys of a schema, besides `properties` and `required`, that do not restrict a call's arguments. */
const ROOT_KEYS = [
  "type",
  "additionalProperties",
  "$defs",
  "definitions",
  "title",
  "description",
  "$schema",
  "$id",
  "strict",
];
const WORD = /^[\p{L}_][\p{L}\p{N}_-]*$/u;
/** All that an argument's schema refers to is looked at for each argument, so there must not be too many. */
const MAX_ARGUMENTS = 100;

/** Tells for schemas of the document whether every value is null, any text, or a text from a list. */
function freeTextOf(root: unknown): (schema: unknown) => boolean {
  return askedOnce((schema, inner) => {
    if (!isObject(schema)) return false;
    const { type, enum: listed, anyOf, oneOf, $ref: reference } = schema;
    const said = Object.keys(schema).filter((key) => !REMARKS.includes(key));
    const only = (...keys: string[]) => said.every((key) => keys.includes(key));
    if (typeof reference === "string") return only("$ref") && inner(resolved(reference, root));
    const parts = anyOf ?? oneOf;
    if (Array.isArray(parts)) return only(anyOf ? "anyOf" : "oneOf") && parts.every(inner);
    const types = Array.isArray(type) ? type : [type];
    if (type === "null") return only("type");
    const isConst = Object.hasOwn(schema, "const");
    const values = isConst ? [schema["const"]] : listed;
    if (values !== undefined) {
      const isPlain = (each: unknown) =>
        typeof each === "string" && /^[^<\n]+$/.test(each) && each === each.trim();
      return only("type", isConst ? "const" : "enum") && Array.isArray(values) &&
        values.every(isPlain) &&
        (type === undefined || type === "string");
    }
    return types.every((each) => each === "string" || each === "null") && only("type");
  });
}

const REMARKS = ["title", "description", "default", "examples", "nullable", "deprecated"];
