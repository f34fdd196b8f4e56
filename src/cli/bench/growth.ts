import { defined } from "../../defined.ts";
import { growthHtml } from "../../measure/growth/page.ts";
import type { GrowthRow } from "../../measure/growth/row.ts";
import type { Growth, GrowthEvent } from "../../measure/growth/session.ts";
import { growthCsv, type GrowthFacts, growthMarkdown } from "../../measure/growth/text.ts";
import type { PageFacts } from "../../measure/page/parts.ts";
import type { ModelRequest } from "../../measure/runner.ts";
import type { BenchOptions } from "../options/options.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { optionalOutput, type OutputFile } from "../terminal/output_file.ts";
import { type StatusLine, statusLine } from "../terminal/progress.ts";
import { modelRequest } from "./bench.ts";
import { commandText } from "./results.ts";

/** Begins a line of standard error about a point that is not measured. */
export const LEFT_OUT = "left out: ";

export interface GrowthContext {
  readonly growth: Growth;
  readonly io: Io;
  /** Downloads what the request names. */
  readonly located: (model: ModelRequest) => Promise<ModelRequest>;
  /** The arguments of `eyrie bench`, for the page. */
  readonly args: readonly string[];
  readonly version: string;
  readonly now?: () => Date;
}

/** `eyrie bench --growth`: rounds against context, batch, rows and model. */
export async function runGrowth(
  options: BenchOptions,
  { growth, io, located, args, version, now = () => new Date() }: GrowthContext,
): Promise<number> {
  const { depths, batchSizes, rows: rowAxis, repeat, bandwidth, format = "md" } = options;
  const file = optionalOutput(options.output, options);
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const models: ModelRequest[] = [];
  for (const model of modelsOf(options, { io, status })) models.push(await located(model));
  const events = growth({
    models,
    axes: {
      ...depths ? { context: depths } : {},
      ...batchSizes ? { batch: batchSizes } : {},
      ...rowAxis ? { rows: rowAxis } : {},
    },
    repeat,
    ...defined({ bandwidth }),
    signal: io.signal,
  });
  const rows: GrowthRow[] = [];
  const skipped: string[] = [];
  const streams = format === "jsonl" && file === undefined;
  const talk = talkOf({ io, status, quiet: options.quiet });
  try {
    for await (const event of events) {
      talk(event);
      if (event.kind === "skipped") skipped.push(`${event.what}: ${event.why}`);
      if (event.kind !== "row") continue;
      rows.push(event.row);
      if (streams) io.stdout.write(`${JSON.stringify(event.row)}\n`);
    }
  } finally {
    status.clear();
  }
  const facts = { command: commandText("bench", args), date: now(), version, skipped };
  writeGrowth(rows, { options, file, io, facts });
  return io.signal.aborted ? INTERRUPTED : 0;
}

/** Writes the rows as the flags say; with `jsonl` to standard output they have been written. */
export function writeGrowth(
  rows: readonly GrowthRow[],
  { options, file, io, facts }: {
    readonly options: Pick<BenchOptions, "bandwidth" | "format">;
    readonly file: OutputFile | undefined;
    readonly io: Io;
    readonly facts: PageFacts & Pick<GrowthFacts, "skipped">;
  },
): void {
  const { format = "md" } = options;
  const given = options.bandwidth !== undefined;
  const all = { ...facts, bandwidth: { gbps: bandwidthOf(rows), given } };
  file?.write(textOf(rows, format, all));
  const shown = file === undefined ? format : "md";
  if (shown !== "jsonl") io.stdout.write(textOf(rows, shown, all));
}

/** A request for each of the names, which are separated by commas. */
function modelsOf(
  options: BenchOptions,
  place: { readonly io: Io; readonly status: StatusLine },
): ModelRequest[] {
  const { model, randomWeights } = options;
  if (randomWeights !== undefined) {
    return randomWeights.split(",").map((randomWeights) =>
      modelRequest({ ...options, randomWeights }, place)
    );
  }
  if (model === undefined) return [modelRequest(options, place)];
  return model.split(",").map((model) => modelRequest({ ...options, model }, place));
}

/** As the floors of the rows have it. */
function bandwidthOf(rows: readonly GrowthRow[]): number | null {
  const known = rows.find(({ floor_ms }) => floor_ms !== null);
  return known?.floor_ms ? known.bytes / 1e6 / known.floor_ms : null;
}

function textOf(
  rows: readonly GrowthRow[],
  format: NonNullable<BenchOptions["format"]>,
  facts: GrowthFacts & PageFacts,
): string {
  switch (format) {
    case "csv":
      return growthCsv(rows);
    case "json": {
      const { bandwidth, skipped } = facts;
      return `${JSON.stringify({ bandwidth, skipped, rows }, null, 1)}\n`;
    }
    case "jsonl":
      return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
    case "html":
      return growthHtml(rows, facts);
    default:
      return growthMarkdown(rows, facts);
  }
}

/** Says on stderr how far it is: a bar on a terminal, a line a point elsewhere; always what is left out. */
function talkOf(
  { io, status, quiet }: { readonly io: Io; readonly status: StatusLine; readonly quiet: boolean },
): (event: GrowthEvent) => void {
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
