import { backendRatios, ratioColumns } from "../backend_ratios.ts";
import { groups } from "../cases.ts";
import { columnsFor, isSimulated, noiseText } from "../columns.ts";
import type { BenchRow } from "../row.ts";
import { type CaseVerdict, caseVerdicts } from "../verdict_text.ts";
import { documentText, type PageMaker, pageMaker, type PageNode } from "./dom.ts";
import { type PageFacts, pageHeader, pageTable, tableBody, termList } from "./parts.ts";
import { section } from "./section.ts";
import { settingStyles } from "./series.ts";
import css from "./style.css" with { type: "text" };

/** The HTML page of `eyrie bench`: one file without a script, which loads nothing. */
export function html(rows: readonly BenchRow[], facts: PageFacts): string {
  const page = pageMaker();
  const styles = settingStyles(rows);
  const verdicts = caseVerdicts(rows);
  const { columns, shared } = columnsFor(rows);
  const simulated = rows.some(isSimulated)
    ? "SIMULATED acceptance: timing only, no real text"
    : undefined;
  const main = page.element(
    "main",
    {},
    ...pageHeader(page, { title: "eyrie bench", simulated, terms: shared, facts }),
    ...fastest(rows, { page, verdicts }),
    ...backendsOf(rows, page),
    ...groups(rows).flatMap((group) => section(group, { page, styles })),
    page.element("h2", { id: "rows" }, "All rows"),
    page.element(
      "p",
      {},
      "A setting that is shown to be the fastest of its batch size stands out.",
    ),
    pageTable(page, {
      id: "rows",
      columns,
      body: tableBody(page, columns, rows, (row) => verdicts.some((one) => one.fastest === row)),
    }),
  );
  const title = `eyrie bench: ${rows[0]?.model ?? ""}, ${rows[0]?.device ?? ""}`;
  return documentText({ title, css, main }, page);
}

function fastest(
  rows: readonly BenchRow[],
  { page, verdicts }: { page: PageMaker; verdicts: readonly CaseVerdict[] },
): PageNode[] {
  const noise = noiseText(rows);
  const won = verdicts.map(({ place, text }) => [place, text, "line"] as const);
  return [
    page.element("h2", {}, "Which setting is fastest"),
    termList(page, won, { class: "won" }),
    ...noise === undefined ? [] : [page.element("p", {}, `${noise}.`)],
  ];
}

/** Both WebGPUs side by side, where the rows are of two. */
function backendsOf(rows: readonly BenchRow[], page: PageMaker): PageNode[] {
  const backends = backendRatios(rows);
  if (backends === undefined) return [];
  const columns = ratioColumns(backends);
  return [
    page.element("h2", { id: "backends" }, backends.names.join(" and ")),
    pageTable(page, {
      id: "backends",
      columns,
      body: tableBody(page, columns, backends.ratios),
    }),
  ];
}
