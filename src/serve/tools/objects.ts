import { isObject } from "../../objects.ts";
import { resolved } from "./values.ts";

/** Deeper references are followed no further: the grammar says what is wrong with them. */
const MOST_DEPTH = 32;

/**
 * Does the schema exclude every JSON object? In doubt the answer is no: the grammar of a call's arguments
 * then makes an object anyway, or it is refused.
 *
 * @param schema JSON schema; a value that is no schema excludes nothing.
 */
export function excludesObjects(schema: unknown): boolean {
  return excludes(schema, { root: schema, depth: 0 });
}

interface Place {
  readonly root: unknown;
  readonly depth: number;
}

function excludes(schema: unknown, { root, depth }: Place): boolean {
  if (schema === false) return true;
  if (!isObject(schema) || depth > MOST_DEPTH) return false;
  const inner = (each: unknown) => excludes(each, { root, depth: depth + 1 });
  const { type, enum: values, anyOf, oneOf, allOf, $ref: reference } = schema;
  if (typeof type === "string" && type !== "object") return true;
  if (Array.isArray(type) && !type.includes("object")) return true;
  if (Object.hasOwn(schema, "const") && !isObject(schema["const"])) return true;
  if (Array.isArray(values) && !values.some(isObject)) return true;
  if ([anyOf, oneOf].some((each) => Array.isArray(each) && each.every(inner))) return true;
  if (Array.isArray(allOf) && allOf.some(inner)) return true;
  return typeof reference === "string" && inner(resolved(reference, root));
}
