/** What JSON Schema's keywords are to us. */
import { isObject } from "../../objects.ts";
import { GrammarError } from "../rules/grammar.ts";

/** A schema that is no boolean. */
export type Schema = Readonly<Record<string, unknown>>;

export type Type = "object" | "array" | "string" | "number" | "integer" | "boolean" | "null";

export const TYPES: readonly Type[] = [
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null",
];

/** Keywords that say something of values of one type. */
const OF_TYPE: Readonly<Record<string, Type>> = {
  properties: "object",
  required: "object",
  additionalProperties: "object",
  minProperties: "object",
  maxProperties: "object",
  items: "array",
  prefixItems: "array",
  additionalItems: "array",
  minItems: "array",
  maxItems: "array",
  uniqueItems: "array",
  minLength: "string",
  maxLength: "string",
  pattern: "string",
  format: "string",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
};

const OF_ALL = ["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"];

/** Part of JSON Schema, and no grammar is made of them. */
const UNSUPPORTED = [
  "not",
  "if",
  "then",
  "else",
  "dependentRequired",
  "dependentSchemas",
  "dependencies",
  "contains",
  "minContains",
  "maxContains",
  "unevaluatedProperties",
  "unevaluatedItems",
  "patternProperties",
  "propertyNames",
  "multipleOf",
  "$dynamicRef",
  "$recursiveRef",
  "$anchor",
  "$dynamicAnchor",
];

/** The keywords of a schema that constrain values; all others are remarks. */
export function constraints(schema: Schema, path: string): Schema {
  const unsupported = UNSUPPORTED.find((keyword) => Object.hasOwn(schema, keyword));
  if (unsupported !== undefined) throw fault(path, `"${unsupported}" is not supported`);
  const known = (keyword: string) => OF_ALL.includes(keyword) || Object.hasOwn(OF_TYPE, keyword);
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => known(keyword)));
}

/** The types that its values may have; where it does not say, those that its keywords are about. */
export function typesOf(schema: Schema, path: string): readonly Type[] {
  const { type } = schema;
  if (type !== undefined) {
    const types = Array.isArray(type) ? type : [type];
    const alien = types.find((each) => !TYPES.includes(each));
    if (alien !== undefined || types.length === 0) {
      throw fault(path, `the type ${JSON.stringify(alien ?? type)} is none of ${TYPES.join(", ")}`);
    }
    return types;
  }
  const about = Object.keys(schema).flatMap((keyword) => OF_TYPE[keyword] ?? []);
  return about.length > 0 ? [...new Set(about)] : TYPES.filter((each) => each !== "integer");
}

export function typeOf(value: unknown): Type {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as Type;
}

/** Whether two values of JSON are the same; -0 is 0, and properties have no order. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((each, i) => isSame(each, b[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]));
}

/** A number of something, 0 or more. */
export function countOf(schema: Schema, keyword: string, path: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0)) {
    return value as number | undefined;
  }
  throw fault(path, `"${keyword}" is ${JSON.stringify(value)}, not an integer of 0 or more`);
}

export function textOf(schema: Schema, keyword: string, path: string): string | undefined {
  const value = schema[keyword];
  if (value === undefined || typeof value === "string") return value;
  throw fault(path, `"${keyword}" is ${JSON.stringify(value)}, not a text`);
}

/** @param path of the schema, a JSON pointer after "#". */
export function fault(path: string, why: string): GrammarError {
  return new GrammarError(`JSON schema, at "${path}": ${why}`);
}
