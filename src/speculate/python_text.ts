// Values of a JSON file as Python prints them: SGLang's error texts quote what they got so.

/** `type(value).__name__` of a value that `json.load` returned. */
export function typeName(value: unknown): string {
  if (value === null) return "NoneType";
  if (Array.isArray(value)) return "list";
  switch (typeof value) {
    case "string":
      return "str";
    case "boolean":
      return "bool";
    case "number":
      return Number.isInteger(value) ? "int" : "float";
    default:
      return "dict";
  }
}

/** `repr(value)` of a value that `json.load` returned; undefined is Python's None. */
export function repr(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (typeof value === "object") {
    const items = Object.entries(value).map(([key, item]) => `${quoted(key)}: ${repr(item)}`);
    return `{${items.join(", ")}}`;
  }
  return String(value);
}

/** Python prefers single quotes, unless only those occur in the text. */
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  return quote + (quote === "'" ? inside.replaceAll("'", "\\'") : inside) + quote;
}
