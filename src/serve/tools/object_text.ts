import { isObject } from "../../objects.ts";

/** Is it the JSON of an object? */
export function isObjectText(json: string): boolean {
  try {
    return isObject(JSON.parse(json));
  } catch {
    return false;
  }
}
