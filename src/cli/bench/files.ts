import { csv } from "../../bench/csv.ts";
import { markdown } from "../../bench/markdown.ts";
import { html, type PageFacts } from "../../bench/page/page.ts";
import type { BenchRow } from "../../bench/row.ts";
import { type EarlierRows, json, parseRows, rowLine } from "../../bench/row_file.ts";
import { reason, UsageError } from "../../errors.ts";

export type BenchFormat = "md" | "csv" | "json" | "jsonl" | "html";

/** All rows in one format. */
export function formatRows(
  rows: readonly BenchRow[],
  { format, facts }: { format: BenchFormat; facts: PageFacts },
): string {
  switch (format) {
    case "md":
      return markdown(rows);
    case "csv":
      return csv(rows);
    case "json":
      return json(rows);
    case "jsonl":
      return rows.map(rowLine).join("");
    case "html":
      return html(rows, facts);
  }
}

/** Text of a file that the person named. @throws UsageError */
export function readNamed(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    throw new UsageError(`Cannot read "${path}": ${reason(error)}`, { cause: error });
  }
}

/** Writes a file that the person named. @throws UsageError */
export function writeNamed(path: string, text: string, options?: Deno.WriteFileOptions): void {
  try {
    Deno.writeTextFileSync(path, text, options);
  } catch (error) {
    throw new UsageError(`Cannot write "${path}": ${reason(error)}`, { cause: error });
  }
}

/** Says before the measuring, not after it, that a file cannot be written. @throws UsageError */
export function checkWritable(path: string | undefined): void {
  if (path !== undefined) writeNamed(path, "", { append: true });
}

/** A row file that grows while rows are measured. */
export interface RowFile {
  readonly earlier: EarlierRows["rows"];
  add(rows: readonly BenchRow[]): void;
}

/** Opens the file of `--resume`; one that is not there yet is begun. @throws UsageError */
export function openRowFile(path: string | undefined): RowFile {
  if (path === undefined) return { earlier: new Map(), add: () => {} };
  checkWritable(path);
  const text = readNamed(path);
  const { rows, whole } = parseRows(path, text);
  if (whole !== text) writeNamed(path, whole); // the last run ended in mid-line
  return {
    earlier: rows,
    add: (rows) => writeNamed(path, rows.map(rowLine).join(""), { append: true }),
  };
}
