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

/** Objects of these names in which the fields of that name have fields of their own. */
const OPEN: Readonly<Record<string, readonly string[]>> = {
  json_schema: ["response_format"],
  format: ["text", "output_config"],
};

/** The value without the fields that are null: they are as left out. Of a list all is kept. */
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
 * Paths of what a check has dropped: fields of `sent` that `kept` does not have, without the numbers
 * of lists: `messages[].colour`.
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
