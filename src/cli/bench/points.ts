/**
 * What `--table growth` and `--table rewrites` share: the models, the rows as they are measured, progress on standard
 * error.
 */
import type { PointEvent } from "../../measure/point_event.ts";
import type { EngineOptions } from "../../engine/options.ts";
import type { BenchOptions } from "../options/options.ts";
import type { Io } from "../terminal/io.ts";
import { type StatusLine, statusLine } from "../terminal/progress.ts";
import { measuredEngine } from "./bench.ts";

/** Begins a line of standard error about a point that is not measured. */
export const LEFT_OUT = "left out: ";

/** Where a measurement of points writes, and what it opens. */
export interface PointsContext {
  readonly io: Io;
  /** Downloads what the request names. */
  readonly located: (model: EngineOptions) => Promise<EngineOptions>;
}

/** What has been measured. */
export interface MeasuredPoints<Row> {
  readonly rows: readonly Row[];
  /** A line for each point that was left out. */
  readonly skipped: readonly string[];
  /** It ended before everything was measured. */
  readonly stopped: boolean;
}

/**
 * Measures points of the models that the options name.
 *
 * @param of.streams each row is written to standard output as a line of JSON.
 * @param of.write is called once at the end, after an error too if anything was measured before it.
 */
export async function measurePoints<Row>(
  options: BenchOptions,
  { io, located }: PointsContext,
  { streams, measure, write }: {
    readonly streams: boolean;
    readonly measure: (models: readonly EngineOptions[]) => AsyncGenerator<PointEvent<Row>>;
    readonly write: (measured: MeasuredPoints<Row>) => void;
  },
): Promise<void> {
  const { quiet } = options;
  const status = statusLine(io.stderr, { shown: !quiet });
  const models: EngineOptions[] = [];
  for (const model of modelsOf(options, { io, status })) models.push(await located(model));
  const rows: Row[] = [];
  const skipped: string[] = [];
  const report = progressReporter({ io, status, quiet });
  try {
    for await (const event of measure(models)) {
      report(event);
      if (event.kind === "skipped") skipped.push(`${event.what}: ${event.why}`);
      if (event.kind !== "row") continue;
      rows.push(event.row);
      if (streams) io.stdout.write(`${JSON.stringify(event.row)}\n`);
    }
  } catch (error) {
    status.clear();
    if (rows.length > 0) write({ rows, skipped, stopped: true });
    throw error;
  }
  status.clear();
  write({ rows, skipped, stopped: io.signal.aborted });
}

/** A request for each of the names, which are separated by commas. */
function modelsOf(
  options: BenchOptions,
  place: { readonly io: Io; readonly status: StatusLine },
): EngineOptions[] {
  const { model } = options;
  if (model === undefined) return [measuredEngine(options, place)];
  return model.split(",").map((model) => measuredEngine({ ...options, model }, place));
}

/** Says on stderr how far it is: a bar on a terminal, a line a point elsewhere; always what is left out. */
function progressReporter(
  { io, status, quiet }: { readonly io: Io; readonly status: StatusLine; readonly quiet: boolean },
): (event: PointEvent<unknown>) => void {
  const plain = !quiet && !io.stderr.isTerminal;
  return (event) => {
    switch (event.kind) {
      case "point":
        status.bench(event);
        if (plain) io.stderr.write(`${event.done + 1} of ${event.total}: ${event.text}\n`);
        return;
      case "row":
        return;
      case "skipped":
        status.clear();
        io.stderr.write(`${LEFT_OUT}${event.what}: ${event.why}\n`);
    }
  };
}
