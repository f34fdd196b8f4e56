import { markdown } from "../../measure/markdown.ts";
import { html } from "../../measure/page/page.ts";
import type { PageFacts } from "../../measure/page/parts.ts";
import type { BenchRow } from "../../measure/row.ts";
import { csv, type EarlierRows, json, jsonLines, parseRows } from "../../measure/row_file.ts";
import { reason, UsageError } from "../../errors.ts";
import { outputFile, writing } from "../terminal/output_file.ts";

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
      return jsonLines(rows);
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

function append(path: string, text: string): void {
  writing(path, () => Deno.writeTextFileSync(path, text, { append: true }));
}

/** A row file that grows while rows are measured. */
export interface RowFile {
  readonly earlier: EarlierRows["rows"];
  add(rows: readonly BenchRow[]): void;
}

/**
 * Opens the file of `--resume`; one that is not there yet is begun.
 *
 * @throws UsageError where it cannot be read and written, or holds anything but rows of `eyrie bench`.
 */
export function openRowFile(path: string | undefined): RowFile {
  if (path === undefined) return { earlier: new Map(), add: () => {} };
  append(path, "");
  const text = readNamed(path);
  const { rows, whole } = parseRows(path, text);
  // The last run ended in the middle of a line.
  if (whole !== text) outputFile(path, { force: true }).write(whole);
  return { earlier: rows, add: (rows) => append(path, jsonLines(rows)) };
}
