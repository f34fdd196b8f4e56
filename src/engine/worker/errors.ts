import { UsageError, withoutPermission } from "../../errors.ts";
import type { SentError } from "./messages.ts";

/** What one thread has thrown, as data for the other one to throw. */
export function sentError(thrown: unknown): SentError {
  const error = withoutPermission(thrown);
  if (!(error instanceof Error)) {
    return { usage: false, field: undefined, message: String(error), stack: undefined };
  }
  const { message, stack } = error;
  const usage = error instanceof UsageError;
  return { usage, field: usage ? error.field : undefined, message, stack };
}

export function receivedError({ usage, field, message, stack }: SentError): Error {
  if (usage) return new UsageError(message, { field });
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
