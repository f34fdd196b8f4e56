import { backendRatios, ratioColumns } from "./backend_ratios.ts";
import { columnsFor, isSimulated, noiseText } from "./columns.ts";
import type { BenchRow } from "./row.ts";
import { markdownText } from "./table.ts";
import { verdictLines } from "./verdict_text.ts";

/** The rows as a Markdown table, with what all rows share above it, verdicts and noise below it. */
export function markdown(rows: readonly BenchRow[]): string {
  const { columns, shared } = columnsFor(rows);
  const noise = noiseText(rows);
  const backends = backendRatios(rows);
  return [
    ...rows.some(isSimulated) ? ["SIMULATED acceptance: timing only"] : [],
    shared.map((fact) => fact.join(" ")).join(", "),
    markdownText(columns, rows),
    ...backends ? [markdownText(ratioColumns(backends), backends.ratios)] : [],
    ...verdictLines(rows),
    ...noise === undefined ? [] : [noise],
  ].join("\n\n") + "\n";
}
