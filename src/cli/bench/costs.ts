import type { OpenCosts } from "../../measure/costs/costs_session.ts";
import { costsText } from "../../measure/costs/costs_text.ts";
import { drafterOf } from "../options/drafter_option.ts";
import { hasDraft } from "../options/measure/bench_flags.ts";
import type { ProfileOptions } from "../options/options.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import { statusLine } from "../terminal/progress.ts";
import { measuredEngine } from "./bench.ts";
import { optionalOutput, writeAndShow } from "../terminal/output_file.ts";

/** Draft steps where they are not given. */
const MAX_STEPS = 7;

/** `eyrie profile`: what rounds cost here, as a table and as a cost file. */
export async function runCosts(
  options: ProfileOptions,
  { open, io }: { readonly open: OpenCosts; readonly io: Io },
): Promise<number> {
  const { maxBatch, seconds, output, json, quiet } = options;
  const drafts = hasDraft({ ...options }) || drafterOf(options.drafter)?.name === "NEXTN";
  const numSteps = options.numSteps ?? (drafts ? MAX_STEPS : 0);
  const file = optionalOutput(output, options);
  const status = statusLine(io.stderr, { shown: !quiet });
  const opening = open({ maxBatch, numSteps, ...measuredEngine(options, { io, status }) });
  using session = await unlessAborted(opening, io.signal).finally(status.clear);
  if (session === undefined) return INTERRUPTED;
  const measured = await session.measure({
    seconds,
    keep: output === undefined,
    signal: io.signal,
    onProgress: (done) =>
      status.bench({ done: Math.round(100 * done), total: 100, text: "costs of rounds" }),
  }).finally(status.clear);
  if (io.signal.aborted) return INTERRUPTED;
  const { table, skipped } = measured;
  const { repeats } = measured;
  writeAndShow(file, {
    content: () => `${JSON.stringify(table, null, 2)}\n`,
    show: () =>
      io.stdout.write(
        json
          ? `${JSON.stringify({ seconds: measured.seconds, repeats, skipped, table }, null, 2)}\n`
          : costsText(measured),
      ),
  });
  const kept = output ?? session.cache;
  if (!quiet && kept !== undefined) io.stderr.write(`cost table in ${kept}\n`);
  return 0;
}
