import { UsageError } from "../../errors.ts";
import { rowsCsv } from "../../measure/csv.ts";
import type { MeasureRewrites } from "../../measure/rewrites/session.ts";
import {
  type RewritesFound,
  rewritesMarkdown,
  rewritesTerminal,
} from "../../measure/rewrites/text.ts";
import { jsonLines } from "../../measure/row_file.ts";
import type { BenchOptions } from "../options/options.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { optionalOutput, type OutputFile, writeAndShow } from "../terminal/output_file.ts";
import { warn } from "../terminal/warn.ts";
import { measurePoints, type PointsContext } from "./points.ts";

export interface RewritesContext extends PointsContext {
  readonly rewrites: MeasureRewrites;
  /** Rewrites that are turned off for the whole process. */
  readonly without: ReadonlySet<string>;
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
  checkWithout(context.without, { io, quiet: options.quiet });
  const file = optionalOutput(options.output, options);
  await measurePoints(options, context, {
    streams: format === "jsonl" && file === undefined,
    measure: (models) =>
      rewrites({ models, context: depths, batch: batchSizes, rows, chunk: CHUNK, repeat, signal }),
    write: (found) => writeRewrites(found, { options, file, io }),
  });
  return signal.aborted ? INTERRUPTED : 0;
}

/** Rewrites that the environment has turned off are measured neither with nor without. @throws UsageError */
function checkWithout(without: ReadonlySet<string>, notices: { io: Io; quiet: boolean }): void {
  if (without.size === 0) return;
  const names = [...without].join(",");
  if (without.has("all")) {
    throw new UsageError(
      `Cannot use "EYRIE_WITHOUT=${names}" with "--table rewrites": no rewrite is left to measure`,
    );
  }
  warn(`EYRIE_WITHOUT=${names}: these rewrites are off in every measurement`, notices);
}

/** Writes the rows as the flags say; with `jsonl` to standard output they have been written. */
export function writeRewrites(
  found: RewritesFound,
  { options, file, io }: {
    readonly options: Pick<BenchOptions, "format">;
    readonly file: OutputFile | undefined;
    readonly io: Io;
  },
): void {
  const { format = "md" } = options;
  const shown = file === undefined ? format : "md";
  const short = io.stdout.isTerminal && (file ?? options.format) === undefined;
  writeAndShow(file, {
    content: () => textOf(found, format),
    show() {
      if (shown === "jsonl") return;
      io.stdout.write(
        short ? rewritesTerminal(found, { columns: io.stdout.columns() }) : textOf(found, shown),
      );
    },
  });
}

function textOf(
  found: RewritesFound,
  format: NonNullable<BenchOptions["format"]>,
): string {
  const { rows, skipped } = found;
  switch (format) {
    case "csv":
      return rowsCsv(rows);
    case "json":
      return `${JSON.stringify({ skipped, rows }, null, 1)}\n`;
    case "jsonl":
      return jsonLines(rows);
    default:
      return rewritesMarkdown(found);
  }
}
