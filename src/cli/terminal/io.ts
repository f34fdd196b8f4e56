import { reason } from "../../errors.ts";
import { onSignal, suspend } from "./signals.ts";

/** What Ctrl+C makes of a command, as shells count it: 128 + SIGINT. */
export const INTERRUPTED = 130;

/** A stream of the process, or a file, that takes no more: a full disk. The exit code is 1. */
export class OutputError extends Error {
  override readonly name = "OutputError";
}

/** A text stream of the process. */
export interface TextSink {
  readonly isTerminal: boolean;
  /**
   * Writes all of it before returning; throws `Deno.errors.BrokenPipe` when nobody reads, else
   * `OutputError`.
   */
  write(text: string): void;
  columns(): number;
  rows(): number;
}

/** The process's streams, terminal and interrupt signal as the commands see them; tests inject others. */
export interface Io {
  readonly stdin: {
    readonly isTerminal: boolean;
    readonly bytes: ReadableStream<Uint8Array>;
    /** Raw: keys arrive one by one, without echo, and Ctrl+C is a key. */
    setRaw(on: boolean): void;
  };
  /** For the result alone. */
  readonly stdout: TextSink;
  /** For everything else: progress, notes, errors. */
  readonly stderr: TextSink;
  /** stderr may be coloured. */
  readonly colour: boolean;
  /** Aborts at the first signal that asks the process to end: Ctrl+C, SIGTERM, a closed terminal. */
  readonly signal: AbortSignal;
  /** Calls `listener` when the process goes on after it was stopped, or the terminal changes size. */
  readonly onSignal: (name: "SIGCONT" | "SIGWINCH", listener: () => void) => Disposable;
  /** Stops the process as Ctrl+Z does; returns when it goes on. */
  readonly suspend: () => void;
}

/**
 * The streams and signals of this process. `Deno.noColor` is the NO_COLOR convention. `onInterrupt` takes over
 * Ctrl+C and the other end signals. It is called when a command first reads `signal`; a command that never
 * reads it is still ended by Ctrl+C.
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
      setRaw: (on) => unlessHungUp(() => Deno.stdin.setRaw(on)),
    },
    stdout: denoOutput(Deno.stdout, "standard output"),
    stderr,
    colour: stderr.isTerminal && !Deno.noColor,
    get signal() {
      return signal ??= onInterrupt();
    },
    onSignal,
    suspend,
  };
}

function denoOutput(file: typeof Deno.stdout, name: string): TextSink {
  const isTerminal = file.isTerminal();
  return {
    isTerminal,
    write(text) {
      let bytes = new TextEncoder().encode(text);
      const writeAll = () => {
        while (bytes.length > 0) bytes = bytes.subarray(file.writeSync(bytes));
      };
      try {
        if (isTerminal) unlessHungUp(writeAll);
        else writeAll();
      } catch (error) {
        if (error instanceof Deno.errors.BrokenPipe) throw error;
        throw new OutputError(`Cannot write to ${name}: ${reason(error)}`, { cause: error });
      }
    },
    columns: () => isTerminal ? terminalSize().columns : 80,
    rows: () => isTerminal ? terminalSize().rows : 24,
  };
}

function unlessHungUp(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!isHungUp(error)) throw error;
  }
}

/** A terminal that was closed gives and takes nothing any more; SIGHUP comes with it and ends the process. */
export function isHungUp(error: unknown): boolean {
  return /^EIO|os error 5\b/.test(error instanceof Error ? error.message : String(error));
}

/** 80 by 24 where a terminal does not report its size, or reports 0 because nobody gave it one. */
function terminalSize(): { columns: number; rows: number } {
  try {
    const { columns, rows } = Deno.consoleSize();
    return { columns: columns || 80, rows: rows || 24 };
  } catch {
    return { columns: 80, rows: 24 };
  }
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
