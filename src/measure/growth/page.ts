import { documentText, type PageMaker, pageMaker, type PageNode } from "../page/dom.ts";
import { figure, legend, type PageFacts, pageHeader, pageTable, tableBody } from "../page/parts.ts";
import { hueAt, patternAt, type SeriesStyles, swatch } from "../page/series.ts";
import css from "../page/style.css" with { type: "text" };
import { chartsOf, type GrowthDrawing } from "./charts.ts";
import { growthTables } from "./columns.ts";
import { GROWTH_AXES } from "./points.ts";
import { type GrowthRow, seriesNames } from "./row.ts";
import { bandwidthText, deviceLines, GROWTH_NOTES, type GrowthFacts } from "./text.ts";

/** The HTML page of `eyrie bench --table growth`: one file without a script, which loads nothing. */
export function growthHtml(rows: readonly GrowthRow[], facts: GrowthFacts & PageFacts): string {
  const page = pageMaker();
  const nameOf = seriesNames(rows);
  const drawing = { page, styles: seriesStyles(rows.map(nameOf)), nameOf };
  const main = page.element(
    "main",
    {},
    ...pageHeader(page, {
      title: "eyrie bench --table growth",
      simulated: undefined,
      terms: [
        ...deviceLines(rows).map((line) => ["measured", line, "line"] as const),
        ["bandwidth", bandwidthText(facts.bandwidth).replace(/^bandwidth /, "")],
      ],
      facts,
    }),
    ...GROWTH_NOTES.map((line) => page.element("p", {}, line)),
    ...GROWTH_AXES.flatMap((axis) => {
      const own = rows.filter((row) => row.axis === axis);
      return own.length === 0 ? [] : section(`By ${axis}`, own, drawing);
    }),
    ...tables(rows, page),
    ...facts.skipped.map((line) => page.element("p", {}, `Left out: ${line}.`)),
  );
  const title = `eyrie bench --table growth: ${rows[0]?.device ?? ""}`;
  return documentText({ title, css, main }, page);
}

const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross"] as const;

/** How each series is drawn, by its name. */
function seriesStyles(names: Iterable<string>): SeriesStyles {
  return new Map(
    [...new Set(names)].map((name, at) => [
      name,
      { colour: hueAt(at), ...patternAt(at, SYMBOLS) },
    ]),
  );
}

/** The charts of one axis, all models in each. */
function section(title: string, rows: readonly GrowthRow[], drawing: GrowthDrawing): PageNode[] {
  const { page: { element }, styles } = drawing;
  const shown = [...styles].filter(([name]) => rows.some((row) => drawing.nameOf(row) === name));
  return [
    element("h2", {}, title),
    legend(drawing.page, shown.map(([name, style]) => [name, swatch(style, drawing.page)])),
    element(
      "div",
      { class: "small" },
      ...chartsOf(rows, drawing).map(({ caption, chart }) => figure(drawing.page, caption, chart)),
    ),
  ];
}

function tables(rows: readonly GrowthRow[], page: PageMaker): PageNode[] {
  return growthTables(rows).flatMap(({ title, columns, rows }, i) => [
    page.element("h2", { id: `table-${i}` }, title),
    pageTable(page, { id: `table-${i}`, columns, body: tableBody(page, columns, rows) }),
  ]);
}
