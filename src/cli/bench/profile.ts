import { defined } from "../../defined.ts";
import { profileText } from "../../measure/profile/profile_text.ts";
import type { OpenProfile, ProfileTable } from "../../measure/profile/profile_session.ts";
import { optionalOutput } from "../terminal/output_file.ts";
import { measuredEngine } from "./bench.ts";
import { hasDraft } from "../options/measure/bench_flags.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import type { BenchOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";

/**
 * `eyrie bench --table profile`: device time by kernel, table by table.
 *
 * @param context.bandwidth in GB/s; undefined: it is measured.
 */
export async function runProfile(
  options: BenchOptions,
  { open, io, bandwidth }: {
    readonly open: OpenProfile;
    readonly io: Io;
    readonly bandwidth?: number | undefined;
  },
): Promise<number> {
  const { batchSizes = [1], depths = [0], repeat, seed, format } = options;
  const file = optionalOutput(options.output, options);
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const opening = open({
    batchSizes,
    numSteps: options.numSteps ?? (hasDraft({ ...options }) ? [0, 3] : [0]),
    depths,
    repeat,
    seed,
    ...defined({ bandwidth }),
    ...measuredEngine(options, { io, status }),
  });
  using session = await unlessAborted(opening, io.signal).finally(status.clear);
  if (session === undefined) return INTERRUPTED;
  const given = bandwidth !== undefined;
  const facts = { subject: session.subject, bandwidth: { gbps: session.bandwidth ?? null, given } };
  const tables: ProfileTable[] = [];
  const text = (json: boolean) =>
    json ? `${JSON.stringify({ ...facts, tables }, null, 2)}\n` : profileText(tables, facts);
  try {
    for await (const table of session.tables(io.signal)) {
      tables.push(table);
      file?.write(text(format === "json"));
    }
  } catch (error) {
    if (error !== io.signal.reason) throw error;
  } finally {
    // After an error too: the tables that were measured before it are shown.
    if (tables.length > 0) io.stdout.write(text(format === "json" && file === undefined));
  }
  return io.signal.aborted ? INTERRUPTED : 0;
}
