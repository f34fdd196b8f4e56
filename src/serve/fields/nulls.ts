import { isObject } from "../../objects.ts";

/** Objects in which null is a value: JSON schemas, arguments of calls, variables of templates. */
const OPAQUE = new Set([
  "schema",
  "parameters",
  "input_schema",
  "input",
  "arguments",
  "chat_template_kwargs",
  "guided_json",
  "json",
  "json_schema",
  "format",
]);

/** Exceptions to OPAQUE: inside of these parents, an object of this name has ordinary fields of its own. */
const OPEN: Readonly<Record<string, readonly string[]>> = {
  json_schema: ["response_format"],
  format: ["text", "output_config"],
};

/** Removes fields that are null: they count as absent. All items of a list are kept. */
export function withoutNulls(value: unknown, name = "", parent = ""): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutNulls(each));
  if (typeof value !== "object" || value === null) return value;
  if (OPAQUE.has(name) && !(OPEN[name]?.includes(parent) ?? false)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== null)
      .map(([key, each]) => [key, withoutNulls(each, key, name)]),
  );
}

/**
 * Paths of the fields that a check has dropped: `sent` has them and `kept` does not. List indices are left
 * out: `messages[].colour`.
 */
export function unknownFields(sent: unknown, kept: unknown, path = ""): string[] {
  if (Array.isArray(sent) && Array.isArray(kept)) {
    return [...new Set(sent.flatMap((each, i) => unknownFields(each, kept[i], `${path}[]`)))];
  }
  if (!isObject(sent) || !isObject(kept)) return [];
  return Object.entries(sent).flatMap(([key, value]) => {
    const name = path === "" ? key : `${path}.${key}`;
    if (!Object.hasOwn(kept, key)) return value === undefined ? [] : [name];
    return unknownFields(value, kept[key], name);
  });
}
