import { documentText, pageMaker, type PageNode } from "../page/dom.ts";
import { dateText, type PageFacts } from "../page/page.ts";
import { swatch } from "../page/series.ts";
import css from "../page/style.css" with { type: "text" };
import {
  arrivalsChart,
  byLoadChart,
  choicesChart,
  type Drawing,
  MEASURES,
  trackChart,
  TRACKS,
} from "./charts.ts";
import { policyLooks } from "./series_style.ts";
import type { LoadRow } from "./row.ts";
import { type LoadSummary, summaries } from "./summary.ts";
import { loadColumns, loadFacts, noteLines } from "./table.ts";

/** Pixels that charts over time are drawn for: half the page, or all of a phone. */
const WIDTHS = { "on-screen": 540, "on-phone": 360 } as const;

/** The whole page: one file, no script, nothing to fetch. */
export function loadHtml(rows: readonly LoadRow[], facts: PageFacts): string {
  const page = pageMaker();
  const all = summaries(rows);
  const drawing = { page, looks: policyLooks(all) };
  const loads = [...Map.groupBy(all, ({ load }) => load)];
  const main = page.element(
    "main",
    {},
    ...header(rows, facts, drawing),
    ...loads.length > 1 ? byLoad(all, drawing) : [],
    ...loads.flatMap(([load, all]) => overTime(load, all, drawing)),
    ...table(all, drawing),
  );
  const title = `eyrie bench load: ${rows[0]?.model_id ?? ""}, ${rows[0]?.device ?? ""}`;
  return documentText({ title, css, main }, page);
}

function header(
  rows: readonly LoadRow[],
  { command, date, version }: PageFacts,
  { page: { element } }: Drawing,
): PageNode[] {
  const terms = [...loadFacts(rows), ["date", dateText(date)], ["eyrie", version]] as const;
  return [
    element("h1", {}, "eyrie bench load"),
    ...rows.some((row) => row.simulated)
      ? [element("div", { class: "simulated" }, "SIMULATED acceptance: timing only, no real text")]
      : [],
    element(
      "dl",
      {},
      element("dt", { class: "line" }, "command"),
      element("dd", {}, element("code", {}, command)),
      ...terms.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    ),
  ];
}

/** Loads side by side. */
function byLoad(all: readonly LoadSummary[], drawing: Drawing): PageNode[] {
  const { element } = drawing.page;
  const shown = all.filter(({ again }) => !again);
  const measures = MEASURES.filter(({ value }) => shown.some((one) => value(one) !== null));
  return [
    element("h2", {}, "By load"),
    legend(shown, drawing),
    element(
      "div",
      { class: "small" },
      ...measures.map((measure) =>
        figure(
          drawing,
          measure.caption,
          byLoadChart(shown, measure, {
            ...drawing,
            name: `${measure.caption} by load`,
          }),
        )
      ),
    ),
  ];
}

function overTime(load: string, all: readonly LoadSummary[], drawing: Drawing): PageNode[] {
  const { element } = drawing.page;
  const shown = all.filter(({ again }) => !again);
  const first = shown[0]?.rows[0]?.timeline;
  const seen = shown.some(({ rows: [row] }) => (row?.rounds ?? 0) > 0);
  const tracks = TRACKS.filter(({ values }) =>
    shown.some(({ rows: [row] }) => row && values(row.timeline).some((value) => value !== null))
  );
  const both = (caption: string, draw: (width: number, name: string) => PageNode) =>
    figure(
      drawing,
      caption,
      ...Object.entries(WIDTHS).map(([style, width]) =>
        element("div", { class: style }, draw(width, `${caption}, ${load}`))
      ),
    );
  return [
    element("h2", {}, `Over time: ${load}`),
    element("p", {}, "The first block. Requests arrive at the same times for all policies."),
    legend(shown, drawing),
    element(
      "div",
      { class: "wide" },
      ...first === undefined ? [] : [
        both("Arrivals", (width, name) => arrivalsChart(first, { ...drawing, width, name })),
      ],
      ...tracks.map((track) =>
        both(track.caption, (width, name) => trackChart(shown, track, { ...drawing, width, name }))
      ),
    ),
    ...seen ? choices(load, shown, drawing) : [],
  ];
}

/** What each policy chose, by the size of the batch. */
function choices(load: string, all: readonly LoadSummary[], drawing: Drawing): PageNode[] {
  const { element } = drawing.page;
  const choosing = all.filter(({ fixed }) => !fixed);
  if (choosing.length === 0) return [];
  const counts = choosing.flatMap(({ stepsByBatch }) => Object.values(stepsByBatch));
  const steps = [...new Set(counts.flatMap((each) => Object.keys(each).map(Number)))]
    .toSorted((a, b) => a - b);
  return [
    element("h3", {}, "Draft steps by batch size"),
    element("p", {}, "Per cent of the rounds of a batch size that had so many steps, all blocks."),
    element(
      "div",
      { class: "small" },
      ...choosing.map((one) =>
        figure(
          drawing,
          one.label,
          choicesChart(one, {
            ...drawing,
            steps,
            name: `Draft steps by batch size, ${one.label}, ${load}`,
          }),
        )
      ),
    ),
  ];
}

function table(all: readonly LoadSummary[], { page: { element } }: Drawing): PageNode[] {
  const columns = loadColumns(all);
  const align = (at: number) => columns[at]?.align === "right" ? { class: "right" } : {};
  const head = columns.map(({ title }, at) => element("th", { scope: "col", ...align(at) }, title));
  const lines = all.map((one) =>
    element(
      "tr",
      {},
      ...columns.map(({ title, text }, at) =>
        title === "policy"
          ? element("th", { scope: "row" }, text(one))
          : element("td", align(at), text(one))
      ),
    )
  );
  return [
    element("h2", { id: "rows" }, "All policies"),
    ...noteLines(all).map((line) => element("p", {}, `${line}.`)),
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

function legend(all: readonly LoadSummary[], { page, looks }: Drawing): PageNode {
  const labels = [...new Set(all.map(({ label }) => label))];
  const items = labels.flatMap((label) => {
    const look = looks.get(label);
    return look ? [page.element("span", {}, swatch(look, page), label)] : [];
  });
  return page.element("div", { class: "legend" }, ...items);
}

function figure(
  { page: { element } }: Drawing,
  caption: string,
  ...charts: readonly PageNode[]
): PageNode {
  return element("figure", {}, element("figcaption", {}, caption), ...charts);
}
