import { parseModelName } from "../../hub/names.ts";
import { bytesText } from "../../text/numbers.ts";
import { fetchModel } from "../open/locate.ts";
import type { Io } from "../terminal/io.ts";
import type { PullOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";

/** `eyrie pull`: models into the cache, their folders on stdout. Returns the exit code. */
export async function runPull(
  { names, options: { quiet } }: { names: readonly string[]; options: PullOptions },
  io: Io,
): Promise<number> {
  const models = names.map(parseModelName);
  const status = statusLine(io.stderr, { shown: !quiet });
  for (const [i, name] of models.entries()) {
    const { commit, folder, downloaded } = await fetchModel(name, { io, quiet }, status)
      .finally(status.clear);
    const came = downloaded === 0 ? "nothing to download" : `${bytesText(downloaded)} downloaded`;
    if (!quiet) io.stderr.write(`${names[i]}: ${commit.slice(0, 7)}, ${came}\n`);
    io.stdout.write(`${folder}\n`);
  }
  return 0;
}
