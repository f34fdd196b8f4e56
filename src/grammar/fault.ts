import { reason, UsageError } from "../errors.ts";

/** Characters of a reason that are shown: it may contain what the user wrote. */
const MOST_SHOWN = 400;

/**
 * What is thrown while one request's grammar is compiled or matched, as that request's own error, in
 * one line. Bugs keep their stack as its cause.
 */
export function grammarFault(error: unknown): UsageError {
  if (error instanceof UsageError) {
    if (error.field !== undefined) return error;
    return new UsageError(error.message, { cause: error.cause, field: "grammar" });
  }
  // The stack that a circle of schemas, or thousands of brackets, did not fit on.
  const why = error instanceof RangeError ? "it is nested too deep" : reason(error);
  return new UsageError(`Cannot constrain the output: ${shown(why)}`, {
    cause: error,
    field: "grammar",
  });
}

function shown(why: string): string {
  const line = why.replaceAll(
    /[\p{Cc}\u2028\u2029]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN)}...` : line;
}
