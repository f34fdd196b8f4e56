import { planRemovals, type Removal, removalText, remove } from "../../hub/remove.ts";
import { bytesText } from "../../text/numbers.ts";
import { type Line, pipedLines } from "../terminal/lines.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { hubOfEnvironment } from "../open/locate.ts";
import type { RemoveOptions } from "../options/options.ts";

/** `eyrie rm`: takes models out of the cache. Exit code 1 where the person says no. */
export async function runRemove(
  { names, options }: { names: readonly string[]; options: RemoveOptions },
  io: Io,
): Promise<number> {
  const { cache } = hubOfEnvironment();
  const removals = planRemovals(cache, names);
  if (!options.force) {
    const answer = await ask(removals, io);
    if (answer.kind !== "line" || !/^y(es)?$/i.test(answer.text.trim())) {
      io.stderr.write("nothing was removed\n");
      return io.signal.aborted ? INTERRUPTED : 1;
    }
  }
  for (const removal of removals) {
    remove(cache, removal);
    io.stdout.write(`removed ${removalText(removal)}, ${bytesText(removal.freedBytes)} freed\n`);
  }
  return 0;
}

async function ask(removals: readonly Removal[], io: Io): Promise<Line> {
  const total = removals.reduce((sum, { freedBytes }) => sum + freedBytes, 0);
  const what = removals.map(removalText).join(", ");
  io.stderr.write(`Remove ${what} and free ${bytesText(total)}? [y/N] `);
  return await pipedLines(io).next("");
}
