/** A mistake that the user can correct. It is reported in one line without a stack; the exit code is 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** The wrong field of a `GenerateRequest` or of its sampling; undefined where no single field is wrong. */
  readonly field: string | undefined;

  constructor(
    message: string,
    { field, ...options }: ErrorOptions & { readonly field?: string | undefined } = {},
  ) {
    super(message, options);
    this.field = field;
  }
}

/** The GPU is lost, or its memory is used up. It is reported in one line without a stack; the exit code is 1. */
export class GpuFailure extends Error {
  override readonly name: string = "GpuFailure";
}

/** A failure of another machine. It is reported in one line without a stack; the exit code is 1. */
export class RemoteError extends Error {
  override readonly name = "RemoteError";
}

/**
 * The reason in a `Cannot <do> "<value>": <reason>` line, from anything thrown. A system error is put in plain
 * words, without the call and the path, which the line names already. A message that begins with `Cannot` gets a
 * lower-case c, because it continues the line; line ends, which the parser of JSON quotes, become spaces.
 */
export function reason(error: unknown): string {
  const message = asError(error).message.replace(/\s*[\r\n]\s*/g, " ");
  const [, said] = /^([^:(]+) \(os error \d+\)/.exec(message) ?? [];
  if (said !== undefined) {
    return PLAIN[codeOf(error)] ?? said.charAt(0).toLowerCase() + said.slice(1);
  }
  // Node's modules write the call and the code first: "listen EADDRINUSE: address already in use 127.0.0.1:80".
  if (/^[a-z]+ E[A-Z_]+\b/.test(message)) return PLAIN[codeOf(error)] ?? message;
  return message.startsWith("Cannot ") ? `cannot ${message.slice(7)}` : message;
}

/** Returns anything thrown as an Error: callers' code may throw a string, or a value without a text. */
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

/** Plain reasons by the system's error code, which does not depend on the system's language. */
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
  ENOTFOUND: "there is no such address",
  EPERM: "the operation is not permitted",
  EROFS: "the file system is read-only",
};

/** Returns the error; one about a permission that Deno was not given becomes a UsageError. */
export function withoutPermission(error: unknown): unknown {
  if (!(error instanceof Deno.errors.NotCapable)) return error;
  // "Requires read access to "PATH", run again with the --allow-read flag"
  return new UsageError(`Cannot run: ${error.message}, or with -A`, { cause: error });
}
