import { UsageError } from "../errors.ts";
import { parseLine } from "./workload/prompt_file.ts";
import { type BenchRow, keyOfRow, ROW_FORMAT } from "./row.ts";

/** One line of a row file. */
export function rowLine(row: BenchRow): string {
  return `${JSON.stringify(row)}\n`;
}

export function json(rows: readonly BenchRow[]): string {
  return `${JSON.stringify(rows, null, 2)}\n`;
}

/** Rows of an earlier run. */
export interface EarlierRows {
  /** By `rowKey`; of rows measured twice the last one. */
  readonly rows: ReadonlyMap<string, BenchRow>;
  /** The text up to the last whole line; an incomplete last line is overwritten. */
  readonly whole: string;
}

/** Reads a file of row lines. @throws UsageError with the number of a line that is none */
export function parseRows(path: string, text: string): EarlierRows {
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
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
