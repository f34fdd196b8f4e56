import type { Io } from "./io.ts";
import type { StatusLine } from "./progress.ts";
import { visible } from "./visible.ts";

/** A warning on stderr, on a line of its own; `--quiet` has none. */
export function warn(
  line: string,
  { io, status, quiet }: { io: Io; status?: StatusLine; quiet: boolean },
): void {
  if (quiet) return;
  status?.clear();
  io.stderr.write(`warning: ${visible(line)}\n`);
}
