/** What the person at the keyboard can mend: reported in one line, exit code 2, no stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What another machine did or did not do: one line, exit code 1, no stack. */
export class RemoteError extends Error {
  override readonly name = "RemoteError";
}

/** The message of anything thrown, for `Cannot <do> "<value>": <reason>` lines. */
export function reason(error: unknown): string {
  return asError(error).message;
}

/** Anything thrown as an Error: code of callers may throw a text, or what has no text at all. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  try {
    return new Error(String(thrown));
  } catch {
    return new Error("something was thrown that has no text");
  }
}

/** What was thrown; where Deno was started without a permission, as the mistake that it is. */
export function withoutPermission(error: unknown): unknown {
  if (!(error instanceof Deno.errors.NotCapable)) return error;
  // "Requires read access to "PATH", run again with the --allow-read flag"
  return new UsageError(`Cannot run: ${error.message}, or with -A`, { cause: error });
}
