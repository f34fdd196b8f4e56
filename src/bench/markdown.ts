import { markdownTable } from "markdown-table";
import { columnsFor, isSimulated, noiseText } from "./columns.ts";
import type { BenchRow } from "./row.ts";
import { verdictLines } from "./verdict_text.ts";

/** A table to paste into an issue: what all rows share above it, verdicts and noise below it. */
export function markdown(rows: readonly BenchRow[]): string {
  const { columns, shared } = columnsFor(rows);
  const table = markdownTable(
    [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ text }) => text(row)))],
    { align: columns.map(({ align }) => align) },
  );
  const simulated = rows.some(isSimulated) ? ["SIMULATED acceptance: timing only"] : [];
  const facts = shared.map(([title, value]) => `${title} ${value}`).join(", ");
  const noise = noiseText(rows);
  const below = [...verdictLines(rows), ...noise === undefined ? [] : [noise]];
  return [...simulated, facts, table, ...below].join("\n\n") + "\n";
}
