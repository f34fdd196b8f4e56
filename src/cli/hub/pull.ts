import { UsageError } from "../../errors.ts";
import { type ModelName, parseModelName } from "../../hub/names.ts";
import { bytesText } from "../../text/numbers.ts";
import { fetchModel } from "../open/locate.ts";
import type { Io } from "../terminal/io.ts";
import { visible } from "../terminal/visible.ts";
import type { PullOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";

/**
 * `eyrie pull`: downloads models into the cache and prints their folders on stdout. Returns the exit code: 2, as
 * other commands for the same message, where one model failed; the others are downloaded all the same.
 */
export async function runPull(
  { names, options: { quiet } }: { names: readonly string[]; options: PullOptions },
  io: Io,
): Promise<number> {
  const models = names.map((text) => ({ text, name: parseModelName(text) }));
  let failures = 0;
  for (const { text, name } of models) {
    try {
      await pullOne(text, name, { io, quiet });
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      failures += 1;
      io.stderr.write(`eyrie: ${visible(error.message)}\n`);
    }
  }
  return failures === 0 ? 0 : 2;
}

async function pullOne(
  text: string,
  name: ModelName,
  { io, quiet }: { io: Io; quiet: boolean },
): Promise<void> {
  const status = statusLine(io.stderr, { shown: !quiet });
  const { commit, folder, downloaded } = await fetchModel(name, { io, quiet }, status)
    .finally(status.clear);
  const size = downloaded === 0 ? "nothing to download" : `${bytesText(downloaded)} downloaded`;
  if (!quiet) io.stderr.write(`${text}: ${commit.slice(0, 7)}, ${size}\n`);
  io.stdout.write(`${folder}\n`);
}
