import { isObject } from "../../objects.ts";
import type { Tool } from "./tool.ts";
import { pythonValue } from "./python.ts";

/** Deeper references are followed no further. */
const MOST_DEPTH = 16;

/** The JSON types that an argument may have; undefined where the tool's schema does not know it. */
export type Types = ReadonlySet<string> | undefined;

/** The types of a schema that names none. */
const ANY: Types = new Set(["string", "number", "integer", "boolean", "null", "array", "object"]);

/** The names of a tool's arguments, as far as its schema lists them. */
export function argumentNames(tool: Tool | undefined): string[] {
  return Object.keys(propertiesOf(tool));
}

function propertiesOf(tool: Tool | undefined): Readonly<Record<string, unknown>> {
  const root = tool?.parameters;
  return isObject(root) && isObject(root["properties"]) ? root["properties"] : {};
}

/** Types of a tool's argument. */
export function argumentTypes(tool: Tool | undefined, argument: string): Types {
  const root = tool?.parameters;
  const properties = propertiesOf(tool);
  if (!Object.hasOwn(properties, argument)) return undefined;
  const types = new Set<string>();
  collect(properties[argument], { root, types, depth: 0 });
  return types.size === 0 ? ANY : types;
}

function collect(
  schema: unknown,
  { root, types, depth }: {
    readonly root: unknown;
    readonly types: Set<string>;
    readonly depth: number;
  },
): void {
  if (!isObject(schema) || depth > MOST_DEPTH) return;
  const { type, nullable, enum: values, anyOf, oneOf, allOf, $ref: reference } = schema;
  for (const each of Array.isArray(type) ? type : [type]) {
    if (typeof each === "string") types.add(each.toLowerCase());
  }
  if (nullable === true) types.add("null");
  if (Array.isArray(values)) { for (const value of values) types.add(typeOf(value)); }
  if (Object.hasOwn(schema, "const")) types.add(typeOf(schema["const"]));
  const inner = { root, types, depth: depth + 1 };
  for (const some of [anyOf, oneOf, allOf]) {
    if (Array.isArray(some)) { for (const each of some) collect(each, inner); }
  }
  if (typeof reference === "string") collect(resolved(reference, root), inner);
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
 * type; otherwise it becomes a string.
 */
export function jsonOfText(text: string, types: Types): string {
  if (types === undefined || isTextOnly(types)) return JSON.stringify(text);
  const trimmed = text.trim();
  const value = literal(trimmed);
  const type = value === undefined ? undefined : typeOf(value);
  const fits = type !== undefined &&
    (types.has(type) || (type === "integer" && types.has("number")));
  if (fits) return WRITTEN_NUMBER.test(trimmed) ? trimmed : JSON.stringify(value);
  return JSON.stringify(text);
}

/** Parses JSON, or Python's words and literals; undefined for other text. */
function literal(text: string): unknown {
  const word = text.toLowerCase();
  if (word === "true" || word === "false") return word === "true";
  if (word === "null" || word === "none") return null;
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
