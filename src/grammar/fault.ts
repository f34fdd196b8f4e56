import { reason, UsageError } from "../errors.ts";

/**
 * What is thrown while one request's grammar is compiled or matched, as that request's own error.
 * Bugs keep their stack as its cause.
 */
export function grammarFault(error: unknown): UsageError {
  if (error instanceof UsageError) return error;
  // The stack that a circle of schemas, or thousands of brackets, did not fit on.
  const why = error instanceof RangeError ? "it is nested too deep" : reason(error);
  return new UsageError(`Cannot constrain the output: ${why}`, { cause: error });
}
