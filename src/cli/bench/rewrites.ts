import type { RewriteRow } from "../../measure/rewrites/row.ts";
import type { MeasureRewrites } from "../../measure/rewrites/session.ts";
import { rewritesCsv, rewritesMarkdown } from "../../measure/rewrites/text.ts";
import type { BenchOptions } from "../options/options.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { optionalOutput, type OutputFile } from "../terminal/output_file.ts";
import { type MeasuredPoints, measurePoints, type PointsContext } from "./points.ts";

export interface RewritesContext extends PointsContext {
  readonly rewrites: MeasureRewrites;
}

const DEFAULT_CONTEXT = 512;
const DEFAULT_ROWS = [1, 4];
const CHUNK = 256;

/** `eyrie bench --table rewrites`: forwards with all rewrites of lowering, and without each. */
export async function runRewrites(
  options: BenchOptions,
  context: RewritesContext,
): Promise<number> {
  const { rewrites, io, io: { signal } } = context;
  const { depths = [DEFAULT_CONTEXT], batchSizes = [1], rows = DEFAULT_ROWS } = options;
  const { repeat, format = "md" } = options;
  const file = optionalOutput(options.output, options);
  const found = await measurePoints(options, context, {
    streams: format === "jsonl" && file === undefined,
    measure: (models) =>
      rewrites({ models, context: depths, batch: batchSizes, rows, chunk: CHUNK, repeat, signal }),
  });
  writeRewrites(found, { options, file, io });
  return signal.aborted ? INTERRUPTED : 0;
}

/** Writes the rows as the flags say; with `jsonl` to standard output they have been written. */
export function writeRewrites(
  found: MeasuredPoints<RewriteRow>,
  { options, file, io }: {
    readonly options: Pick<BenchOptions, "format">;
    readonly file: OutputFile | undefined;
    readonly io: Io;
  },
): void {
  const { format = "md" } = options;
  file?.write(textOf(found, format));
  const shown = file === undefined ? format : "md";
  if (shown !== "jsonl") io.stdout.write(textOf(found, shown));
}

function textOf(
  { rows, skipped }: MeasuredPoints<RewriteRow>,
  format: NonNullable<BenchOptions["format"]>,
): string {
  switch (format) {
    case "csv":
      return rewritesCsv(rows);
    case "json":
      return `${JSON.stringify({ skipped, rows }, null, 1)}\n`;
    case "jsonl":
      return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
    default:
      return rewritesMarkdown(rows, skipped);
  }
}
