import { isObject } from "../../objects.ts";
import { askedOnce, resolved } from "./values.ts";

/**
 * Does the schema exclude every JSON object? In doubt the answer is no: the grammar of a call's arguments
 * then makes an object anyway, or it is refused.
 *
 * @param root JSON schema; a value that is no schema excludes nothing.
 */
export function excludesObjects(root: unknown): boolean {
  return askedOnce((schema, inner) => {
    if (schema === false) return true;
    if (!isObject(schema)) return false;
    const { type, enum: values, anyOf, oneOf, allOf, $ref: reference } = schema;
    if (typeof type === "string" && type !== "object") return true;
    if (Array.isArray(type) && !type.includes("object")) return true;
    if (Object.hasOwn(schema, "const") && !isObject(schema["const"])) return true;
    if (Array.isArray(values) && !values.some(isObject)) return true;
    if ([anyOf, oneOf].some((each) => Array.isArray(each) && each.every(inner))) return true;
    if (Array.isArray(allOf) && allOf.some(inner)) return true;
    return typeof reference === "string" && inner(resolved(reference, root));
  })(root);
}
