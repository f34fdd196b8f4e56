/** What the pages of bench, bench load, growth and breakeven are made of: a header, figures, legends and tables. */
import type { Column } from "../table.ts";
import type { PageMaker, PageNode } from "./dom.ts";

/** What a page says about the run besides its rows. */
export interface PageFacts {
  /** The command as it was typed. */
  readonly command: string;
  readonly date: Date;
  readonly version: string;
}

/** A name and its value; one with `line` has a line of its own. */
export type Term = readonly [name: string, value: PageNode | string, line?: "line"];

/** `2026-11-21 23:19 UTC` */
function dateText(date: Date): string {
  return `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** A list of names and values. */
export function termList(
  { element }: PageMaker,
  terms: readonly Term[],
  attributes: Readonly<Record<string, string>> = {},
): PageNode {
  const nodes = terms.flatMap(([name, value, line]) => [
    element("dt", line ? { class: line } : {}, name),
    element("dd", {}, value),
  ]);
  return element("dl", attributes, ...nodes);
}

/** The title, the warning of simulated rows where there is one, and how and where the rows were measured. */
export function pageHeader(
  page: PageMaker,
  { title, simulated, terms, facts }: {
    readonly title: string;
    readonly simulated: string | undefined;
    readonly terms: readonly Term[];
    readonly facts: PageFacts;
  },
): PageNode[] {
  const { element } = page;
  return [
    element("h1", {}, title),
    ...simulated === undefined ? [] : [element("div", { class: "simulated" }, simulated)],
    termList(page, [
      ["command", element("code", {}, facts.command), "line"],
      ...terms,
      ["date", dateText(facts.date)],
      ["eyrie", facts.version],
    ]),
  ];
}

/** Charts under a caption. */
export function figure(
  { element }: PageMaker,
  caption: string,
  ...charts: readonly PageNode[]
): PageNode {
  return element("figure", {}, element("figcaption", {}, caption), ...charts);
}

/** Pixels of wide charts: half the page on a screen, the whole width of a phone. The style shows one of the two. */
const WIDTHS = { "on-screen": 540, "on-phone": 360 } as const;

/** A figure with the chart that `draw` makes of each width. */
export function wideFigure(
  page: PageMaker,
  caption: string,
  draw: (width: number) => PageNode,
): PageNode {
  const charts = Object.entries(WIDTHS).map(([style, width]) =>
    page.element("div", { class: style }, draw(width))
  );
  return figure(page, caption, ...charts);
}

/** Marks and the names of what they stand for. */
export function legend(
  { element }: PageMaker,
  entries: readonly (readonly [name: string, mark: PageNode])[],
): PageNode {
  const items = entries.map(([name, mark]) => element("span", {}, mark, name));
  return element("div", { class: "legend" }, ...items);
}

/** A table that scrolls sideways where it is wider than the page. `id` is the id of its heading. */
export function pageTable(
  { element }: PageMaker,
  { id, columns, body }: {
    readonly id: string;
    readonly columns: readonly Pick<Column<never>, "title" | "align">[];
    readonly body: PageNode;
  },
): PageNode {
  const head = columns.map((column) =>
    element("th", { scope: "col", ...alignment(column) }, column.title)
  );
  return element(
    "div",
    { class: "table", role: "region", "aria-labelledby": id, tabindex: "0" },
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), body),
  );
}

/** The rows of a table; those for which `isBest` is true stand out. */
export function tableBody<Row>(
  { element }: PageMaker,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  isBest: (row: Row) => boolean = () => false,
): PageNode {
  const lines = rows.map((row) => {
    const cells = columns.map((column) =>
      column.rowHeader
        ? element("th", { scope: "row", ...alignment(column) }, column.text(row))
        : element("td", alignment(column), column.text(row))
    );
    return element("tr", isBest(row) ? { class: "best" } : {}, ...cells);
  });
  return element("tbody", {}, ...lines);
}

function alignment({ align }: Pick<Column<never>, "align">): Readonly<Record<string, string>> {
  return align === "right" ? { class: "right" } : {};
}
