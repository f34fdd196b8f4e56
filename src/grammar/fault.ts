import { reason, UsageError } from "../errors.ts";

/** The most characters of a reason that are shown, because it may quote the user's grammar. */
const MAX_SHOWN = 400;

/**
 * Turns anything thrown while one request's grammar is compiled or matched into a one-line error of that
 * request. A bug is kept, with its stack, as the error's cause.
 */
export function grammarFault(error: unknown): UsageError {
  if (error instanceof UsageError) {
    if (error.field !== undefined) return error;
    return new UsageError(error.message, { cause: error.cause, field: "grammar" });
  }
  // A stack overflow, from circular schemas or thousands of nested brackets.
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
  return line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}...` : line;
}
