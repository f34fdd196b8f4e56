import type { Io } from "./io.ts";
import type { StatusLine } from "./progress.ts";

/** A warning on stderr, on a line of its own. */
export function warn(line: string, { io, status }: { io: Io; status?: StatusLine }): void {
  status?.clear();
  io.stderr.write(`warning: ${line}\n`);
}
