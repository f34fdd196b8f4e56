import type { z } from "zod";
import { invalid } from "../http/errors.ts";

/** A request's body as it was sent. */
export type Body = Readonly<Record<string, unknown>>;

/** How a route treats a field that its schema does not have. */
export type Taking =
  /** Any value: no answer depends on it. */
  | { readonly kind: "hint" }
  /** Values that change nothing; the others are refused. */
  | {
    readonly kind: "neutral";
    readonly is: (value: unknown, body: Body) => boolean;
    /** Completes "Cannot use "field": ...". */
    readonly why: string;
  }
  /** Another name for fields of the route; a value that the schema does not take is refused. */
  | {
    readonly kind: "honoured";
    readonly schema: z.ZodType;
    readonly as: (value: unknown, body: Body) => Body;
  }
  /** The field needs tools or parts that this server does not have: it is dropped and named. */
  | { readonly kind: "dropped" };

/** Fields by name. */
export type TakingTable = Readonly<Record<string, Taking>>;

export const HINT: Taking = { kind: "hint" };

export const DROPPED: Taking = { kind: "dropped" };

/** These values alone are taken, since they change nothing. */
export function neutral(values: readonly unknown[], why: string): Taking {
  const texts = values.map((value) => JSON.stringify(value));
  return { kind: "neutral", is: (value) => texts.includes(JSON.stringify(value)), why };
}

/** Taken where `is` says that it changes nothing. */
export function neutralWhere(
  is: (value: unknown, body: Body) => boolean,
  why: string,
): Taking {
  return { kind: "neutral", is, why };
}

/** No value can be used. */
export function refused(why: string): Taking {
  return { kind: "neutral", is: () => false, why };
}

/** The field is another name for what `as` returns. */
export function honoured<T>(
  schema: z.ZodType<T>,
  as: (value: T, body: Body) => Body,
): Taking {
  return { kind: "honoured", schema, as: (value, body) => as(value as T, body) };
}

export interface TakenFields {
  /** The fields of the route's schema, and those that nobody knows. */
  readonly body: Body;
  /** Fields without an effect. */
  readonly hints: readonly string[];
  readonly dropped: readonly string[];
  /** The name that the client gave for fields of the route: `max_tokens` -> `n_predict`. */
  readonly names: Readonly<Record<string, string>>;
}

/**
 * Reads a body's fields by the table. Where `body` gives a field under two names with different values, it
 * is refused.
 *
 * @param check checks a value with a schema. @throws ApiError (400) with the field's name.
 */
export function takeFields(
  body: Body,
  table: TakingTable,
  check: (schema: z.ZodType, value: unknown, name: string) => unknown,
): TakenFields {
  const kept: Record<string, unknown> = {};
  const [hints, dropped]: [string[], string[]] = [[], []];
  const names: Record<string, string> = {};
  const aliases: [name: string, fields: Body][] = [];
  for (const [name, value] of Object.entries(body)) {
    const taking = Object.hasOwn(table, name) ? table[name] : undefined;
    switch (taking?.kind) {
      case undefined:
        kept[name] = value;
        break;
      case "hint":
        hints.push(name);
        break;
      case "dropped":
        dropped.push(name);
        break;
      case "neutral":
        if (!taking.is(value, body)) throw invalid(`Cannot use "${name}": ${taking.why}`, name);
        hints.push(name);
        break;
      case "honoured":
        aliases.push([name, taking.as(check(taking.schema, value, name), body)]);
    }
  }
  for (const [name, fields] of aliases) {
    if (Object.keys(fields).length === 0) hints.push(name);
    for (const [field, value] of Object.entries(fields)) {
      const same = JSON.stringify(kept[field]) === JSON.stringify(value);
      if (kept[field] !== undefined && !same) {
        const other = names[field] ?? field;
        throw invalid(`Cannot use "${name}" with "${other}": they say the same thing`, name);
      }
      kept[field] = value;
      names[field] ??= name;
    }
  }
  return { body: kept, hints, dropped, names };
}
