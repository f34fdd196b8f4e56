/** Whether alternatives of `oneOf` exclude each other. */
import { isObject } from "../../objects.ts";
import { checkTime } from "../rules/time_limit.ts";
import { isSame, type Schema, typeOf, typesOf } from "./keywords.ts";

/** True where surely no value satisfies both; `resolved` follows a schema's `$ref`. */
export function areApart(
  a: unknown,
  b: unknown,
  resolved: (schema: unknown) => unknown,
): boolean {
  checkTime();
  const [left, right] = [resolved(a), resolved(b)];
  if (left === false || right === false) return true;
  if (!isObject(left) || !isObject(right)) return false;
  const [mine, others] = [valuesOf(left), valuesOf(right)];
  if (mine && others) {
    return !mine.some((one) => {
      checkTime();
      return others.some((other) => isSame(one, other));
    });
  }
  if (!shareType(left, right)) return true;
  return apartByProperty(left, right, resolved) || lacks(left, right) || lacks(right, left);
}

function valuesOf(schema: Schema): readonly unknown[] | undefined {
  if (Object.hasOwn(schema, "const")) return [schema.const];
  return Array.isArray(schema.enum) ? schema.enum : undefined;
}

function shareType(a: Schema, b: Schema): boolean {
  const [mine, others] = [a, b].map((schema) => {
    const types = valuesOf(schema)?.map(typeOf) ??
      (schema.type === undefined ? undefined : typesOf(schema, ""));
    return types?.map((type) => type === "integer" ? "number" : type);
  });
  return mine === undefined || others === undefined || mine.some((type) => others.includes(type));
}

/** Both require a property that cannot be valid for both. */
function apartByProperty(
  a: Schema,
  b: Schema,
  resolved: (schema: unknown) => unknown,
): boolean {
  if (a.type !== "object" || b.type !== "object") return false;
  const [mine, others] = [propertiesOf(a), propertiesOf(b)];
  return requiredOf(a).some((name) => {
    checkTime();
    return requiredOf(b).includes(name) && Object.hasOwn(mine, name) &&
      Object.hasOwn(others, name) && areApart(mine[name], others[name], resolved);
  });
}

/** The first requires a property that the second does not have. */
function lacks(a: Schema, b: Schema): boolean {
  return a.type === "object" && b.type === "object" && b.additionalProperties === false &&
    requiredOf(a).some((name) => !Object.hasOwn(propertiesOf(b), name));
}

function requiredOf({ required }: Schema): readonly string[] {
  return Array.isArray(required) ? required : [];
}

function propertiesOf({ properties }: Schema): Schema {
  return isObject(properties) ? properties : {};
}
