/** References to schemas that have identifiers of their own. */
import { isObject } from "../../objects.ts";
import { checkTime } from "../rules/time_limit.ts";

/** Keywords whose values are objects of schemas by name. */
const NAMED = ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"];

/** Keywords whose values are no schemas. */
const VALUES = ["const", "enum", "default", "examples"];

/** Where a schema without `$id` is said to be. */
const NOWHERE = "schema:///";

/** Where a schema is: the URI that its references are relative to, and its pointer from the root. */
interface Place {
  readonly base: string;
  readonly pointer: string;
}

type Schema = Readonly<Record<string, unknown>>;

/**
 * The schema with each `$ref` written as a pointer from its root, `#/$defs/a`. Within a schema with an `$id` a `$ref`
 * is relative to that, and an `$id` can be referred to. A `$ref` that leads to none stays as it is.
 */
export function withPointers(schema: unknown): unknown {
  /** Pointers by URI. */
  const places = new Map<string, string>();
  let isPlain = true;
  mapped(schema, { base: NOWHERE, pointer: "#" }, (each, { base, pointer }) => {
    if (!places.has(base)) places.set(base, pointer);
    const isNested = pointer !== "#" && typeof each.$id === "string";
    const refersOut = typeof each.$ref === "string" && !each.$ref.startsWith("#");
    if (isNested || refersOut) isPlain = false;
    return each;
  });
  if (isPlain) return schema;
  return mapped(schema, { base: NOWHERE, pointer: "#" }, (each, { base }) => {
    const target = typeof each.$ref === "string" ? URL.parse(each.$ref, base) : null;
    if (target === null) return each;
    const { hash } = target;
    target.hash = "";
    const place = places.get(target.href);
    return place === undefined ? each : { ...each, $ref: place + hash.slice(1) };
  });
}

/** The schema with what `change` makes of it and of each schema within it. */
function mapped(
  schema: unknown,
  { base, pointer }: Place,
  change: (schema: Schema, place: Place) => Schema,
): unknown {
  checkTime();
  if (Array.isArray(schema)) {
    return schema.map((each, i) => mapped(each, { base, pointer: `${pointer}/${i}` }, change));
  }
  if (!isObject(schema)) return schema;
  const { $id } = schema;
  const own = typeof $id === "string" && !$id.startsWith("#") ? URL.parse($id, base) : null;
  if (own) own.hash = "";
  const place = { base: own?.href ?? base, pointer };
  const at = (pointer: string, name: string) => ({
    ...place,
    pointer: `${pointer}/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`,
  });
  const within = Object.entries(change(schema, place)).map(([keyword, value]) => {
    if (VALUES.includes(keyword)) return [keyword, value];
    const { pointer: inside } = at(pointer, keyword);
    if (!NAMED.includes(keyword) || !isObject(value)) {
      return [keyword, mapped(value, { ...place, pointer: inside }, change)];
    }
    const named = Object.entries(value)
      .map(([name, each]) => [name, mapped(each, at(inside, name), change)]);
    return [keyword, Object.fromEntries(named)];
  });
  return Object.fromEntries(within);
}
