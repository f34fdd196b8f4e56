import type { z } from "zod";

/** What a value has to be, by zod's names of types. */
const KINDS: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a text",
};

const UNITS: Readonly<Record<string, string>> = { array: "item", string: "character" };

/**
 * Says why a value does not fit a schema that has no message of its own: completes
 * `Cannot use "field": ...`. It quotes only numbers, `true` and `false`, because errors are logged and a text may
 * be a prompt. Undefined leaves the message to zod.
 */
export function reasonOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === "invalid_key") return issue.issues[0]?.message;
  const other = issue.code === "invalid_union" ? otherThanType(issue.errors) : undefined;
  if (other !== undefined) return other.message;
  const allowed = allowedBy(issue);
  if (allowed === undefined) return undefined;
  const found = foundIn(issue);
  return `${found === undefined ? "" : `${found}, `}allowed is ${allowed}`;
}

/** Returns why the value does not fit the alternative that has its type. */
function otherThanType(
  alternatives: readonly (readonly z.core.$ZodIssue[])[],
): z.core.$ZodIssue | undefined {
  return alternatives.flat().find(({ code }) => code === "too_small" || code === "too_big");
}

function allowedBy(
  issue: z.core.$ZodRawIssue | z.core.$ZodIssue,
): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return KINDS[issue.expected];
    case "invalid_value":
      return listed(issue.values);
    case "too_small":
      return bound(issue.origin, issue.minimum, issue.inclusive ? "at least" : "more than");
    case "too_big":
      return bound(issue.origin, issue.maximum, issue.inclusive ? "at most" : "less than");
    case "invalid_union": {
      if ("options" in issue && Array.isArray(issue.options)) return listed(issue.options);
      const each = issue.errors.map(([first]) => first && allowedBy(first));
      return each.includes(undefined) ? undefined : [...new Set(each)].join(", or ");
    }
    default:
      return undefined;
  }
}

function bound(origin: string, limit: number | bigint, compared: string): string {
  const unit = UNITS[origin];
  if (unit === undefined) return `a number of ${compared} ${limit}`;
  return `${compared} ${limit} ${unit}${limit === 1 ? "" : "s"}`;
}

function listed(values: readonly unknown[]): string {
  return values.map((value) => JSON.stringify(value)).join(", ");
}

function foundIn({ code, input }: z.core.$ZodRawIssue): string | undefined {
  if (typeof input === "number" || typeof input === "boolean") return `it is ${input}`;
  if (code === "too_small" || code === "too_big") {
    if (typeof input === "string") return counted(input.length, "character");
    return Array.isArray(input) ? counted(input.length, "item") : undefined;
  }
  if (code !== "invalid_type") return undefined;
  if (typeof input === "string") return "it is a text";
  if (Array.isArray(input)) return "it is a list";
  return typeof input === "object" && input !== null ? "it is an object" : undefined;
}

function counted(count: number, unit: string): string {
  return `it has ${count} ${unit}${count === 1 ? "" : "s"}`;
}
