/** What the person at the keyboard can mend: reported in one line, exit code 2, no stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** The field of a `GenerateRequest` that is wrong, or of its sampling; undefined where it is no single one. */
  readonly field: string | undefined;

  constructor(
    message: string,
    { field, ...options }: ErrorOptions & { readonly field?: string | undefined } = {},
  ) {
    super(message, options);
    this.field = field;
  }
}

/** What another machine did or did not do: one line, exit code 1, no stack. */
export class RemoteError extends Error {
  override readonly name = "RemoteError";
}

/**
 * The message of anything thrown, for `Cannot <do> "<value>": <reason>` lines: what the system says in plain
 * words, without the call and the path, which the line has; a sentence that begins with `Cannot` continues one.
 */
export function reason(error: unknown): string {
  const { message } = asError(error);
  const [, said] = /^([^:(]+) \(os error \d+\)/.exec(message) ?? [];
  if (said !== undefined) {
    return PLAIN[codeOf(error)] ?? said.charAt(0).toLowerCase() + said.slice(1);
  }
  return message.startsWith("Cannot ") ? `cannot ${message.slice(7)}` : message;
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

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** By the system's code, which is the same in all languages. */
const PLAIN: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EADDRINUSE: "the address is in use",
  EADDRNOTAVAIL: "this machine does not have the address",
  EDQUOT: "the disk quota is used up",
  EEXIST: "there is such a file",
  EFBIG: "the file would be too large for the file system",
  EISDIR: "it is a folder",
  ELOOP: "its links go round in a circle",
  EMFILE: "too many files are open",
  ENAMETOOLONG: "the name is too long",
  ENOENT: "no such file or folder",
  ENOSPC: "no space left",
  ENOTDIR: "a part of the path is a file, not a folder",
  EPERM: "the operation is not permitted",
  EROFS: "the file system is read-only",
};

/** What was thrown; where Deno was started without a permission, as the mistake that it is. */
export function withoutPermission(error: unknown): unknown {
  if (!(error instanceof Deno.errors.NotCapable)) return error;
  // "Requires read access to "PATH", run again with the --allow-read flag"
  return new UsageError(`Cannot run: ${error.message}, or with -A`, { cause: error });
}
