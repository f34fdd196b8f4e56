import { reason } from "../../errors.ts";

/** What Ctrl+C makes of a command, as shells count it: 128 + SIGINT. */
export const INTERRUPTED = 130;

/** A stream of the process that takes no more: a full disk. */
export class OutputError extends Error {
  override readonly name = "OutputError";
}

/** A text stream of the process. */
export interface Output {
  readonly isTerminal: boolean;
  /**
   * Writes all of it before returning; throws `Deno.errors.BrokenPipe` when nobody reads, else
   * `OutputError`.
   */
  write(text: string): void;
  columns(): number;
}

/** The process's streams, terminal and interrupt signal as the commands see them; tests inject others. */
export interface Io {
  readonly stdin: {
    readonly isTerminal: boolean;
    readonly bytes: ReadableStream<Uint8Array>;
    /** Raw: keys arrive one by one, without echo, and Ctrl+C is a key. */
    setRaw(on: boolean): void;
  };
  /** The product. */
  readonly stdout: Output;
  /** Everything about it. */
  readonly stderr: Output;
  /** stderr may be coloured. */
  readonly colour: boolean;
  /** Aborts at the first Ctrl+C that reaches the process as a signal. */
  readonly signal: AbortSignal;
}

/**
 * Those of this process. `Deno.noColor` is the NO_COLOR convention. `onInterrupt` takes over Ctrl+C; it
 * is called when a command first reads the signal, so Ctrl+C still ends the commands that do not.
 */
export function denoIo(onInterrupt: () => AbortSignal): Io {
  let signal: AbortSignal | undefined;
  const stderr = denoOutput(Deno.stderr, "standard error");
  return {
    stdin: {
      isTerminal: Deno.stdin.isTerminal(),
      get bytes() {
        return Deno.stdin.readable;
      },
      setRaw: (on) => Deno.stdin.setRaw(on),
    },
    stdout: denoOutput(Deno.stdout, "standard output"),
    stderr,
    colour: stderr.isTerminal && !Deno.noColor,
    get signal() {
      return signal ??= onInterrupt();
    },
  };
}

function denoOutput(file: typeof Deno.stdout, name: string): Output {
  const isTerminal = file.isTerminal();
  return {
    isTerminal,
    write(text) {
      let bytes = new TextEncoder().encode(text);
      try {
        while (bytes.length > 0) bytes = bytes.subarray(file.writeSync(bytes));
      } catch (error) {
        if (error instanceof Deno.errors.BrokenPipe) throw error;
        throw new OutputError(`Cannot write to ${name}: ${reason(error)}`, { cause: error });
      }
    },
    columns: () => isTerminal ? Deno.consoleSize().columns : 80,
  };
}

/** The promise's value, or undefined when the signal aborts first; the promise keeps running. */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  const stop = () => resolve(undefined);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
