import { UsageError, withoutPermission } from "../../errors.ts";
import type { SentError } from "./messages.ts";

/** What is thrown in one thread, for the other to throw. */
export function sentError(thrown: unknown): SentError {
  const error = withoutPermission(thrown);
  if (!(error instanceof Error)) return { usage: false, message: String(error), stack: undefined };
  const { message, stack } = error;
  return { usage: error instanceof UsageError, message, stack };
}

export function receivedError({ usage, message, stack }: SentError): Error {
  if (usage) return new UsageError(message);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
