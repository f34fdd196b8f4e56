import { GpuFailure, UsageError, withoutPermission } from "../../errors.ts";
import type { SentError } from "./messages.ts";

/** What one thread has thrown, as data for the other one to throw. */
export function sentError(thrown: unknown): SentError {
  const error = withoutPermission(thrown);
  if (!(error instanceof Error)) {
    return { kind: "other", field: undefined, message: String(error), stack: undefined };
  }
  const { message, stack } = error;
  if (error instanceof UsageError) return { kind: "usage", field: error.field, message, stack };
  const kind = error instanceof GpuFailure ? "gpu" : "other";
  return { kind, field: undefined, message, stack };
}

export function receivedError({ kind, field, message, stack }: SentError): Error {
  if (kind === "usage") return new UsageError(message, { field });
  if (kind === "gpu") return new GpuFailure(message);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
