import { markdownTable } from "markdown-table";
import { type BackendRatios, backendRatios, ratioTable } from "./backend_ratios.ts";
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
  const backends = backendRatios(rows);
  const compared = backends ? [tableText(backends)] : [];
  const below = [...compared, ...verdictLines(rows), ...noise === undefined ? [] : [noise]];
  return [...simulated, facts, table, ...below].join("\n\n") + "\n";
}

function tableText(backends: BackendRatios): string {
  const { heads, cells } = ratioTable(backends);
  const left = new Set(["case", "setting"]);
  const align = heads.map((head) => left.has(head) ? "l" : "r");
  return markdownTable([heads, ...cells].map((line) => [...line]), { align });
}
