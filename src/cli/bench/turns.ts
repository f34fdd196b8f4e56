/** Processes that measure in turns: each waits for a line on its standard input before a block. */
import type { Io } from "../terminal/io.ts";

/** Set in the environment of such a process. */
export const TURNS_VARIABLE = "EYRIE_BENCH_TURNS";

/** The line that it writes between its rows when it waits. */
export const TURN_LINE = '{"turn":true}';

/** `turn` announces a block on standard output, then waits for a line that allows it, or for Ctrl+C. */
export function openTurns({ stdin, stdout, signal }: Pick<Io, "stdin" | "stdout" | "signal">): {
  readonly turn: () => Promise<void>;
} {
  const reader = stdin.bytes.getReader();
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve());
  return {
    async turn() {
      if (signal.aborted) return;
      stdout.write(`${TURN_LINE}\n`);
      // The parent sends one line for each turn, so a read returns that line, or the end of input.
      await Promise.race([reader.read(), aborted]);
    },
  };
}
