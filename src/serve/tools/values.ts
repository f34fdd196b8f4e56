import { isObject } from "../../objects.ts";
import type { Tool } from "./tool.ts";
import { pythonValue } from "./python.ts";

/** The JSON types that an argument may have; undefined where the tool's schema does not know it. */
export type Types = ReadonlySet<string> | undefined;

/** The types of a schema that names none. */
const ANY: Types = new Set(["string", "number", "integer", "boolean", "null", "array", "object"]);

/** The names of a tool's arguments, as far as its schema lists them. */
export function argumentNames({ parameters: root }: Tool): string[] {
  return partsOf(root, root).flatMap(({ properties }) =>
    isObject(properties) ? Object.keys(properties) : []
  );
}

/** Types of a tool's argument. */
export function argumentTypes(tool: Tool | undefined, argument: string): Types {
  const root = tool?.parameters;
  const schemas = partsOf(root, root).flatMap(({ properties }) =>
    isObject(properties) && Object.hasOwn(properties, argument) ? [properties[argument]] : []
  );
  if (schemas.length === 0) return undefined;
  const types = new Set(schemas.flatMap((schema) => partsOf(schema, root)).flatMap(ownTypes));
  return types.size === 0 ? ANY : types;
}

/** A schema and all that it refers to or combines, each once: a schema may refer to itself. */
function partsOf(schema: unknown, root: unknown): Readonly<Record<string, unknown>>[] {
  const parts = new Set<Readonly<Record<string, unknown>>>();
  const pending = [schema];
  for (const each of pending) {
    if (!isObject(each) || parts.has(each)) continue;
    parts.add(each);
    const { anyOf, oneOf, allOf, $ref: reference } = each;
    for (const some of [anyOf, oneOf, allOf]) if (Array.isArray(some)) pending.push(...some);
    if (typeof reference === "string") pending.push(resolved(reference, root));
  }
  return [...parts];
}

/** Deeper schemas are looked at no further. */
const MAX_DEPTH = 32;

/**
 * A question about a schema that asks itself about the schemas within. Each schema is asked about once, because
 * references can lead to it in more ways than can be followed. The answer is false beyond MAX_DEPTH and for a schema
 * that is being asked about.
 */
export function askedOnce(
  question: (schema: unknown, inner: (schema: unknown) => boolean) => boolean,
): (schema: unknown) => boolean {
  const answers = new Map<unknown, boolean>();
  const ask = (schema: unknown, depth: number): boolean => {
    const known = depth > MAX_DEPTH ? false : answers.get(schema);
    if (known !== undefined) return known;
    answers.set(schema, false);
    const answer = question(schema, (each) => ask(each, depth + 1));
    answers.set(schema, answer);
    return answer;
  };
  return (schema) => ask(schema, 0);
}

/** The types that a schema names itself. */
function ownTypes(schema: Readonly<Record<string, unknown>>): string[] {
  const { type, nullable, enum: values } = schema;
  const named = (Array.isArray(type) ? type : [type]).filter((each) => typeof each === "string");
  return [
    ...named.map((each) => each.toLowerCase()),
    ...nullable === true ? ["null"] : [],
    ...Array.isArray(values) ? values.map(typeOf) : [],
    ...Object.hasOwn(schema, "const") ? [typeOf(schema["const"])] : [],
  ];
}

/** What a reference inside of the document names; undefined for others. */
export function resolved(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return undefined;
  let at: unknown = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(at) || !Object.hasOwn(at, key)) return undefined;
    at = at[key];
  }
  return at;
}

/** Is a value of these types written as it is, without quotes, whatever it looks like? */
export function isTextOnly(types: Types): boolean {
  return types === undefined || [...types].every((type) => type === "string");
}

/**
 * JSON of a value that is written without quotes. It gets its own JSON type where the schema allows that
 * type; otherwise it becomes a string, with the quotes that it may have.
 */
export function jsonOfText(text: string, types: Types): string {
  if (types === undefined || isTextOnly(types)) return JSON.stringify(text);
  const trimmed = text.trim();
  const value = literal(types.has("string") ? trimmed : inAnyCase(trimmed));
  const type = value === undefined ? "string" : typeOf(value);
  const fits = type !== "string" &&
    (types.has(type) || (type === "integer" && types.has("number")));
  if (fits) return WRITTEN_NUMBER.test(trimmed) ? trimmed : JSON.stringify(value);
  return JSON.stringify(text);
}

const WORDS: Readonly<Record<string, boolean | null>> = {
  True: true,
  False: false,
  None: null,
};

/** A word of JSON or Python in any case as JSON has it: where no text is allowed, it is nothing else. */
function inAnyCase(text: string): string {
  const word = text.toLowerCase().replace("none", "null");
  return ["true", "false", "null"].includes(word) ? word : text;
}

/** Parses JSON, or Python's words and literals; undefined for other text. */
function literal(text: string): unknown {
  if (Object.hasOwn(WORDS, text)) return WORDS[text];
  try {
    return JSON.parse(text);
  } catch {
    const json = /^[[{(]/.test(text) ? pythonValue(text) : undefined;
    return json === undefined ? undefined : JSON.parse(json);
  }
}

/** Numbers are copied as they are written: parsing a number with many digits would lose some. */
const WRITTEN_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** The tool of this name, also where the tool's own namespace stands in front once more: `read.read`. */
export function toolNamed(tools: readonly Tool[], name: string): Tool | undefined {
  const exact = tools.find((tool) => tool.name === name);
  if (exact !== undefined) return exact;
  const [space] = name.split(".", 1);
  const inner = name.slice((space ?? "").length + 1);
  return inner.split(".", 1)[0] === space ? tools.find((tool) => tool.name === inner) : undefined;
}
