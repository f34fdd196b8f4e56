import { documentText, type PageMaker, pageMaker, type PageNode } from "../page/dom.ts";
import { dateText, type PageFacts } from "../page/page.ts";
import { type Looks, swatch } from "../page/series.ts";
import css from "../page/style.css" with { type: "text" };
import { chartsOf } from "./charts.ts";
import { type GrowthTable, growthTables } from "./columns.ts";
import { seriesLooks } from "./series_style.ts";
import { GROWTH_AXES } from "./points.ts";
import { type GrowthRow, seriesNames } from "./row.ts";
import { bandwidthText, deviceLines, GROWTH_NOTES, type GrowthFacts } from "./text.ts";

interface Drawing {
  readonly page: PageMaker;
  readonly looks: Looks;
  readonly nameOf: ReturnType<typeof seriesNames>;
}

/** The whole page: one file, no script, nothing to fetch. */
export function growthHtml(rows: readonly GrowthRow[], facts: GrowthFacts & PageFacts): string {
  const page = pageMaker();
  const drawing = { page, looks: seriesLooks(rows), nameOf: seriesNames(rows) };
  const main = page.element(
    "main",
    {},
    ...header(rows, facts, drawing),
    ...GROWTH_AXES.flatMap((axis) => {
      const own = rows.filter((row) => row.axis === axis);
      return own.length === 0 ? [] : section(`By ${axis}`, own, drawing);
    }),
    ...tables(rows, drawing),
    ...facts.skipped.map((line) => page.element("p", {}, `Left out: ${line}.`)),
  );
  const title = `eyrie bench --growth: ${rows[0]?.device ?? ""}`;
  return documentText({ title, css, main }, page);
}

function header(
  rows: readonly GrowthRow[],
  facts: GrowthFacts & PageFacts,
  { page: { element } }: Drawing,
): PageNode[] {
  const terms = [
    ["bandwidth", bandwidthText(facts.bandwidth).replace(/^bandwidth /, "")],
    ["date", dateText(facts.date)],
    ["eyrie", facts.version],
  ] as const;
  return [
    element("h1", {}, "eyrie bench --growth"),
    element(
      "dl",
      {},
      element("dt", { class: "line" }, "command"),
      element("dd", {}, element("code", {}, facts.command)),
      ...deviceLines(rows).flatMap((line) => [
        element("dt", { class: "line" }, "measured"),
        element("dd", {}, line),
      ]),
      ...terms.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    ),
    ...GROWTH_NOTES.map((line) => element("p", {}, line)),
  ];
}

/** The charts of one axis, all models in each. */
function section(title: string, rows: readonly GrowthRow[], drawing: Drawing): PageNode[] {
  const { page: { element }, looks } = drawing;
  const shown = [...looks].filter(([name]) => rows.some((row) => drawing.nameOf(row) === name));
  const legend = shown.map(([name, look]) => element("span", {}, swatch(look, drawing.page), name));
  return [
    element("h2", {}, title),
    element("div", { class: "legend" }, ...legend),
    element(
      "div",
      { class: "small" },
      ...chartsOf(rows, drawing).map(({ caption, chart }) =>
        element("figure", {}, element("figcaption", {}, caption), chart)
      ),
    ),
  ];
}

function tables(rows: readonly GrowthRow[], { page: { element } }: Drawing): PageNode[] {
  return growthTables(rows).flatMap((table, i) => [
    element("h2", { id: `table-${i}` }, table.title),
    element(
      "div",
      { class: "table", role: "region", "aria-labelledby": `table-${i}`, tabindex: "0" },
      tableOf(table, element),
    ),
  ]);
}

function tableOf({ rows, columns }: GrowthTable, element: PageMaker["element"]): PageNode {
  const head = columns.map(({ title }) => element("th", { scope: "col", class: "right" }, title));
  const lines = rows.map((row) =>
    element(
      "tr",
      {},
      ...columns.map(({ text }, at) =>
        at === 0
          ? element("th", { scope: "row", class: "right" }, text(row))
          : element("td", { class: "right" }, text(row))
      ),
    )
  );
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...lines),
  );
}
