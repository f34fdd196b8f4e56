/** Two schemas that hold at once as one. */
import { isObject } from "../../objects.ts";
import { checkTime } from "../rules/time_limit.ts";
import { constraints, fault, isSame, type Schema, type Type, TYPES, typesOf } from "./keywords.ts";

/**
 * A schema of what satisfies both; false where nothing can.
 *
 * @throws GrammarError for keywords that cannot be joined.
 */
export function merged(a: unknown, b: unknown, path: string): unknown {
  if (a === false || b === false) return false;
  if (a === true) return b;
  if (b === true) return a;
  if (!isObject(a) || !isObject(b)) throw fault(path, "a schema is neither object nor boolean");
  checkTime();
  const [left, right] = [constraints(a, path), constraints(b, path)];
  const made: Record<string, unknown> = { ...left, ...right };
  for (const keyword of Object.keys(left)) {
    const [mine, other] = [left[keyword], right[keyword]];
    if (other === undefined || isSame(mine, other)) continue;
    const join = JOINS[keyword];
    if (join === undefined) throw fault(path, `two different "${keyword}" that are both to hold`);
    made[keyword] = join(mine, other, path);
  }
  // The items of one would have to hold for the first items of the other too, which are not joined.
  if (made.prefixItems !== undefined) {
    const other = [left, right].find(({ prefixItems }) => prefixItems === undefined);
    if (other?.items !== undefined) throw fault(path, `"items" beside a schema with "prefixItems"`);
  }
  if (isObject(made.properties) || made.additionalProperties !== undefined) {
    checkAdditional(left, right, path);
    checkAdditional(right, left, path);
  }
  return Array.isArray(made.type) && made.type.length === 0 ? false : made;
}

type Join = (a: unknown, b: unknown, path: string) => unknown;

const larger: Join = (a, b) => Math.max(Number(a), Number(b));
const smaller: Join = (a, b) => Math.min(Number(a), Number(b));
const asBoth: Join = (a, b) => ({ allOf: [a, b] });

const JOINS: Readonly<Record<string, Join>> = {
  type: (a, b, path) => commonTypes(typesOf({ type: a }, path), typesOf({ type: b }, path)),
  required: (a, b, path) => [...new Set([...listOf(a, path), ...listOf(b, path)])],
  properties: (a, b, path) => joinedProperties(a, b, path),
  additionalProperties: (a, b) => a === false || b === false ? false : asBoth(a, b, ""),
  items: asBoth,
  allOf: (a, b, path) => [...listOf(a, path), ...listOf(b, path)],
  minimum: larger,
  exclusiveMinimum: larger,
  minLength: larger,
  minItems: larger,
  maximum: smaller,
  exclusiveMaximum: smaller,
  maxLength: smaller,
  maxItems: smaller,
  minProperties: larger,
  maxProperties: smaller,
  enum: (a, b, path) =>
    listOf(a, path).filter((one) => {
      checkTime();
      return listOf(b, path).some((two) => isSame(one, two));
    }),
};

function listOf(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw fault(path, `${JSON.stringify(value)} is no list`);
}

function commonTypes(a: readonly Type[], b: readonly Type[]): readonly Type[] {
  const has = (types: readonly Type[], type: Type) =>
    types.includes(type) || (type === "integer" && types.includes("number"));
  const common = TYPES.filter((type) => has(a, type) && has(b, type));
  return common.includes("number") ? common.filter((type) => type !== "integer") : common;
}

function joinedProperties(a: unknown, b: unknown, path: string): unknown {
  if (!isObject(a) || !isObject(b)) throw fault(path, `"properties" is no object`);
  const shared = Object.keys(a).filter((name) => Object.hasOwn(b, name))
    .map((name) => [name, asBoth(a[name], b[name], path)] as const);
  return { ...a, ...b, ...Object.fromEntries(shared) };
}

/** What one schema forbids besides its own properties must not be what the other one names. */
function checkAdditional(closed: Schema, other: Schema, path: string): void {
  const { additionalProperties: additional = true, properties = {} } = closed;
  if (additional === true || !isObject(other.properties)) return;
  const beyond = Object.keys(other.properties).find((name) =>
    !Object.hasOwn(properties as Schema, name)
  );
  if (beyond === undefined) return;
  throw fault(path, `"additionalProperties" beside a schema with the property "${beyond}"`);
}
