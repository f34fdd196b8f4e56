import { UsageError } from "../errors.ts";
import { csvText } from "./csv.ts";
import { parseLine } from "./workload/prompt_file.ts";
import { type BenchRow, keyOfRow, ROW_FORMAT } from "./row.ts";

/** Rows as JSON, one a line. */
export function jsonLines(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

/** The rows as one JSON array. */
export function json(rows: readonly BenchRow[]): string {
  return `${JSON.stringify(rows, null, 2)}\n`;
}

const NO_GAP = { ratio: null, low: null, high: null, best: null };

/** All numbers of the rows as CSV; the names of the columns are those of the JSON rows. */
export function csv(rows: readonly BenchRow[]): string {
  return csvText(rows.map((row) => {
    const { format: _format, switch_log: _log, timeline: _timeline, tier_share, ...rest } = row;
    return {
      ...rest,
      gap_to_best_static: row.gap_to_best_static ?? NO_GAP,
      tier_share: Object.entries(tier_share).map(([tier, share]) => `${tier}:${share}`),
    };
  }));
}

/** Rows of an earlier run. */
export interface EarlierRows {
  /** The rows by `rowKey`; the last one if a measurement is there twice. */
  readonly rows: ReadonlyMap<string, BenchRow>;
  /** The text of the complete lines, without a row that was cut off in the middle. */
  readonly whole: string;
}

/** The beginning of every row line. */
const ROW_START = `{"format":"${ROW_FORMAT}"`;

/**
 * Reads a file of row lines. A last line that is the beginning of a row, as an interrupted run leaves it, is skipped.
 *
 * @throws UsageError with the number of the first line that is not a row.
 */
export function parseRows(path: string, text: string): EarlierRows {
  const lastLine = text.slice(text.lastIndexOf("\n") + 1);
  const cut = isCutRow(lastLine);
  const whole = cut ? text.slice(0, text.length - lastLine.length) : withNewline(text);
  const rows = new Map<string, BenchRow>();
  for (const [at, line] of whole.split("\n").entries()) {
    if (line.trim() === "") continue;
    const fields = parseLine(line);
    const wrong = typeof fields === "string"
      ? fields
      : fields["format"] === ROW_FORMAT
      ? undefined
      : `no row of eyrie bench (format "${ROW_FORMAT}")`;
    if (wrong !== undefined) {
      throw new UsageError(`Cannot resume from "${path}": line ${at + 1}: ${wrong}`);
    }
    const row = fields as unknown as BenchRow;
    rows.set(keyOfRow(row), row);
  }
  return { rows, whole };
}

function withNewline(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/** Is this the beginning of a row and no more? */
function isCutRow(line: string): boolean {
  const start = line.replace(/\s+/g, "").slice(0, ROW_START.length);
  if (start === "" || !ROW_START.startsWith(start)) return false;
  return typeof parseLine(line) === "string";
}
