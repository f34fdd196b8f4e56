/** Two processes that measure by turns: each waits for a line on its standard input before a block. */
import type { Io } from "../terminal/io.ts";

/** Set in the environment of such a process. */
export const TURNS_VARIABLE = "EYRIE_BENCH_TURNS";

/** What it writes among its rows where it waits. */
export const TURN_LINE = '{"turn":true}';

/** Says on standard output that a block is to begin and waits until a line says that it may, or Ctrl+C. */
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
      // A line a turn: what is read is one, or the end.
      await Promise.race([reader.read(), aborted]);
    },
  };
}
