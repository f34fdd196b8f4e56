import { UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";

/** A JSON object of a checkpoint under inspection. */
export interface Fields {
  /** What messages name: the checkpoint. */
  readonly name: string;
  /** Which file or part of it, for messages: `config.json`, `config.json rope_scaling`. */
  readonly where: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** A checkpoint's JSON file as fields to read. @throws UsageError when it is not an object. */
export function fieldsOf(name: string, file: string, json: unknown): Fields {
  if (isObject(json)) return { name, where: file, values: json };
  throw new UsageError(`Cannot use ${quote(name)}: ${file} is not a JSON object`);
}

/** What an integer field must be. Without `fallback` the field is required. */
export interface IntegerRule {
  readonly min: number;
  readonly max: number;
  readonly multipleOf?: number;
  readonly fallback?: number;
}

const LONGEST_QUOTE = 120;

/** A name or value from a file, quoted for a one-line message: escaped, and cut when very long. */
export function quote(value: unknown): string {
  // JSON has no word for Infinity, which 1e999 is read as.
  const text = typeof value === "number" ? String(value) : JSON.stringify(value) ?? String(value);
  return text.length <= LONGEST_QUOTE ? text : `${text.slice(0, LONGEST_QUOTE)}…`;
}

/** `Cannot use "NAME": WHERE WHY`. */
export function unusable(fields: Fields, why: string): UsageError {
  return new UsageError(`Cannot use ${quote(fields.name)}: ${fields.where} ${why}`);
}

/** The field's value; `null` counts as absent, as in transformers. */
export function value(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields.values, key) ? fields.values[key] ?? undefined : undefined;
}

/** @throws UsageError if a field is present with another value. */
export function expect(config: Fields, key: string, only: string | number | boolean): void {
  const found = value(config, key) ?? only;
  if (found === only) return;
  throw unusable(config, `has ${key} ${quote(found)}, expected ${quote(only)}`);
}

/** An integer within `rule`. @throws UsageError naming the field and what is allowed. */
export function integer(fields: Fields, key: string, rule: IntegerRule): number {
  const found = value(fields, key) ?? rule.fallback;
  if (found === undefined) throw unusable(fields, `has no ${key}`);
  const step = rule.multipleOf ?? 1;
  if (
    !Number.isSafeInteger(found) || Number(found) < rule.min || Number(found) > rule.max ||
    Number(found) % step !== 0
  ) {
    const kind = step === 1 ? "an integer" : `a multiple of ${step}`;
    const allowed = `expected ${kind} from ${rule.min} to ${rule.max}`;
    throw unusable(fields, `has ${key} ${quote(found)}, ${allowed}`);
  }
  return Number(found);
}

/** Numbers must be from 1 / MAX to MAX: 2^25 times such a number, and 1 over it, are then finite in float32. */
const MAX = 1e30;

/** A number above zero; required without `fallback`. @throws UsageError */
export function positive(fields: Fields, key: string, fallback?: number): number {
  const found = value(fields, key) ?? fallback;
  if (found === undefined) throw unusable(fields, `has no ${key}`);
  if (typeof found !== "number" || !(found >= 1 / MAX && found <= MAX)) {
    throw unusable(fields, `has ${key} ${quote(found)}, expected a number above 0`);
  }
  return found;
}

/** A boolean. @throws UsageError when it is anything else. */
export function flag(fields: Fields, key: string, fallback: boolean): boolean {
  const found = value(fields, key) ?? fallback;
  if (typeof found !== "boolean") {
    throw unusable(fields, `has ${key} ${quote(found)}, expected true or false`);
  }
  return found;
}

/** A nested object, undefined when absent. @throws UsageError when it is anything else. */
export function nested(fields: Fields, key: string): Fields | undefined {
  const found = value(fields, key);
  if (found === undefined) return undefined;
  if (!isObject(found)) throw unusable(fields, `has ${key} ${quote(found)}, expected an object`);
  return { name: fields.name, where: `${fields.where} ${key}`, values: found };
}

/** A list of integers from 0 to `max`; a single number counts as a list. @throws UsageError */
export function integers(fields: Fields, key: string, max: number): number[] | undefined {
  const found = value(fields, key);
  if (found === undefined) return undefined;
  const list: unknown[] = Array.isArray(found) ? found : [found];
  return list.map((item) => {
    if (!Number.isSafeInteger(item) || Number(item) < 0 || Number(item) > max) {
      throw unusable(fields, `has ${quote(item)} in ${key}, expected an integer from 0 to ${max}`);
    }
    return Number(item);
  });
}
