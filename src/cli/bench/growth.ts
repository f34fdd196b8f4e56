import { defined } from "../../defined.ts";
import { rowsCsv } from "../../measure/csv.ts";
import { growthHtml } from "../../measure/growth/page.ts";
import type { GrowthRow } from "../../measure/growth/row.ts";
import type { Growth } from "../../measure/growth/session.ts";
import { type GrowthFacts, growthMarkdown } from "../../measure/growth/text.ts";
import type { PageFacts } from "../../measure/page/parts.ts";
import { jsonLines } from "../../measure/row_file.ts";
import type { BenchOptions } from "../options/options.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { optionalOutput, type OutputFile, writeAndShow } from "../terminal/output_file.ts";
import { measurePoints, type PointsContext } from "./points.ts";
import { commandText } from "./results.ts";

export interface GrowthContext extends PointsContext {
  readonly growth: Growth;
  /** The arguments of `eyrie bench`, for the page. */
  readonly args: readonly string[];
  readonly version: string;
  /** GB/s; undefined: it is measured. */
  readonly bandwidth?: number | undefined;
  readonly now?: () => Date;
}

/** `eyrie bench --table growth`: rounds against context, batch, rows and model. */
export async function runGrowth(
  options: BenchOptions,
  context: GrowthContext,
): Promise<number> {
  const { growth, io, args, version, bandwidth, now = () => new Date() } = context;
  const { depths, batchSizes, rows: rowAxis, repeat, format = "md" } = options;
  const file = optionalOutput(options.output, options);
  await measurePoints(options, context, {
    streams: format === "jsonl" && file === undefined,
    measure: (models) =>
      growth({
        models,
        axes: {
          ...depths ? { context: depths } : {},
          ...batchSizes ? { batch: batchSizes } : {},
          ...rowAxis ? { rows: rowAxis } : {},
        },
        repeat,
        ...defined({ bandwidth }),
        signal: io.signal,
      }),
    write({ rows, skipped }) {
      const facts = { command: commandText("bench", args), date: now(), version, skipped };
      writeGrowth(rows, { options, file, io, facts, given: bandwidth !== undefined });
    },
  });
  return io.signal.aborted ? INTERRUPTED : 0;
}

/** Writes the rows as the flags say; with `jsonl` to standard output they have been written. */
export function writeGrowth(
  rows: readonly GrowthRow[],
  { options, file, io, facts, given }: {
    readonly options: Pick<BenchOptions, "format">;
    readonly file: OutputFile | undefined;
    readonly io: Io;
    readonly facts: PageFacts & Pick<GrowthFacts, "skipped">;
    /** Whether the user named the bandwidth that the rows are compared with. */
    readonly given: boolean;
  },
): void {
  const { format = "md" } = options;
  const all = { ...facts, bandwidth: { gbps: bandwidthOf(rows), given } };
  const shown = file === undefined ? format : "md";
  writeAndShow(file, {
    content: () => textOf(rows, format, all),
    show() {
      if (shown !== "jsonl") io.stdout.write(textOf(rows, shown, all));
    },
  });
}

/** The bandwidth that the floors of the rows were computed with. */
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
      return rowsCsv(rows);
    case "json": {
      const { bandwidth, skipped } = facts;
      return `${JSON.stringify({ bandwidth, skipped, rows }, null, 1)}\n`;
    }
    case "jsonl":
      return jsonLines(rows);
    case "html":
      return growthHtml(rows, facts);
    default:
      return growthMarkdown(rows, facts);
  }
}
