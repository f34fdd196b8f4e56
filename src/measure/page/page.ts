import { backendRatios, ratioTable } from "../backend_ratios.ts";
import { groups } from "../cases.ts";
import { columnsFor, isSimulated, noiseText } from "../columns.ts";
import type { BenchRow } from "../row.ts";
import { type CaseVerdict, caseVerdicts } from "../verdict_text.ts";
import { documentText, type PageMaker, pageMaker, type PageNode } from "./dom.ts";
import { section } from "./section.ts";
import { looksOf } from "./series.ts";
import css from "./style.css" with { type: "text" };

/** What the page says of the run besides its rows. */
export interface PageFacts {
  /** As typed. */
  readonly command: string;
  readonly date: Date;
  readonly version: string;
}

/** The whole page: one file, no script, nothing to fetch. */
export function html(rows: readonly BenchRow[], facts: PageFacts): string {
  const page = pageMaker();
  const looks = looksOf(rows);
  const verdicts = caseVerdicts(rows);
  const main = page.element(
    "main",
    {},
    ...header(rows, { page, facts, verdicts }),
    ...backendsOf(rows, page),
    ...groups(rows).flatMap((group) => section(group, { page, looks })),
    ...tableOf(rows, { page, verdicts }),
  );
  const title = `eyrie bench: ${rows[0]?.model ?? ""}, ${rows[0]?.device ?? ""}`;
  return documentText({ title, css, main }, page);
}

/** `2026-11-21 23:19 UTC` */
export function dateText(date: Date): string {
  return `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function header(
  rows: readonly BenchRow[],
  { page, facts, verdicts }: {
    page: PageMaker;
    facts: PageFacts;
    verdicts: readonly CaseVerdict[];
  },
): PageNode[] {
  const { element } = page;
  const { shared } = columnsFor(rows);
  const noise = noiseText(rows);
  const term =
    (style: Record<string, string>) => ([name, value]: readonly [string, PageNode | string]) => [
      element("dt", style, name),
      element("dd", {}, value),
    ];
  const date = dateText(facts.date);
  const terms = [
    ...[["command", element("code", {}, facts.command)] as const].flatMap(term({ class: "line" })),
    ...[...shared, ["date", date] as const, ["eyrie", facts.version] as const].flatMap(term({})),
  ];
  const won = verdicts.map(({ place, text }) => [place, text] as const);
  return [
    element("h1", {}, "eyrie bench"),
    ...rows.some(isSimulated)
      ? [element("div", { class: "simulated" }, "SIMULATED acceptance: timing only, no real text")]
      : [],
    element("dl", {}, ...terms),
    element("h2", {}, "Which setting is fastest"),
    element("dl", { class: "won" }, ...won.flatMap(term({ class: "line" }))),
    ...noise === undefined ? [] : [element("p", {}, `${noise}.`)],
  ];
}

/** Both WebGPUs side by side, where the rows are of two. */
function backendsOf(rows: readonly BenchRow[], { element }: PageMaker): PageNode[] {
  const backends = backendRatios(rows);
  if (backends === undefined) return [];
  const { heads, cells } = ratioTable(backends);
  const words = new Set(["case", "setting"]);
  const align = (at: number) => words.has(heads[at] ?? "") ? {} : { class: "right" };
  const line = (tag: string, texts: readonly string[]) =>
    element("tr", {}, ...texts.map((text, at) => element(tag, align(at), text)));
  return [
    element("h2", { id: "backends" }, `${backends.names[0]} and ${backends.names[1]}`),
    element(
      "div",
      { class: "table", role: "region", "aria-labelledby": "backends", tabindex: "0" },
      element(
        "table",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            ...heads.map((head, at) => element("th", { scope: "col", ...align(at) }, head)),
          ),
        ),
        element("tbody", {}, ...cells.map((texts) => line("td", texts))),
      ),
    ),
  ];
}

function tableOf(
  rows: readonly BenchRow[],
  { page: { element }, verdicts }: { page: PageMaker; verdicts: readonly CaseVerdict[] },
): PageNode[] {
  const { columns } = columnsFor(rows);
  const fastest = new Set(verdicts.map((one) => one.fastest));
  const align = (at: number) => columns[at]?.align === "right" ? { class: "right" } : {};
  const head = columns.map(({ title }, at) => element("th", { scope: "col", ...align(at) }, title));
  const cell = (row: BenchRow, at: number) => {
    const { title = "", text = () => "" } = columns[at] ?? {};
    return title === "setting"
      ? element("th", { scope: "row" }, text(row))
      : element("td", align(at), text(row));
  };
  const lines = rows.map((row) =>
    element(
      "tr",
      fastest.has(row) ? { class: "best" } : {},
      ...columns.map((_, at) => cell(row, at)),
    )
  );
  return [
    element("h2", { id: "rows" }, "All rows"),
    element("p", {}, "A setting that is shown to be the fastest of its batch size stands out."),
    element(
      "div",
      { class: "table", role: "region", "aria-labelledby": "rows", tabindex: "0" },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...head)),
        element("tbody", {}, ...lines),
      ),
    ),
  ];
}
