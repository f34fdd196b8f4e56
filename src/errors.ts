/** What the person at the keyboard can mend: reported in one line, exit code 2, no stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The message of anything thrown, for `Cannot <do> "<value>": <reason>` lines. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
