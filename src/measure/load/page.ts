import { documentText, type PageMaker, pageMaker, type PageNode } from "../page/dom.ts";
import { figure, legend, type PageFacts, pageHeader, pageTable, termList } from "../page/parts.ts";
import { tableBody, wideFigure } from "../page/parts.ts";
import { type Drawing, swatch } from "../page/series.ts";
import css from "../page/style.css" with { type: "text" };
import {
  arrivalsChart,
  byLoadChart,
  choicesChart,
  MEASURES,
  trackChart,
  TRACKS,
} from "./charts.ts";
import { policyStyles } from "./series_style.ts";
import type { LoadRow } from "./row.ts";
import { type LoadSummary, summaries } from "./summary.ts";
import { loadColumns, loadFacts, noteLines } from "./table.ts";
import { verdictsByLoad } from "./verdict.ts";

/** The HTML page of `eyrie bench load`: one file without a script, which loads nothing. */
export function loadHtml(rows: readonly LoadRow[], facts: PageFacts): string {
  const page = pageMaker();
  const all = summaries(rows);
  const drawing = { page, styles: policyStyles(all) };
  const loads = [...Map.groupBy(all, ({ load }) => load)];
  const main = page.element(
    "main",
    {},
    ...pageHeader(page, {
      title: "eyrie bench load",
      simulated: rows.some((row) => row.simulated)
        ? "SIMULATED acceptance: timing only, no real text"
        : undefined,
      terms: loadFacts(rows),
      facts,
    }),
    ...fastest(all, page),
    ...loads.length > 1 ? byLoad(all, drawing) : [],
    ...loads.flatMap(([load, all]) => overTime(load, all, drawing)),
    ...table(all, page),
  );
  const title = `eyrie bench load: ${rows[0]?.model_id ?? ""}, ${rows[0]?.device ?? ""}`;
  return documentText({ title, css, main }, page);
}

function fastest(all: readonly LoadSummary[], page: PageMaker): PageNode[] {
  const verdicts = verdictsByLoad(all);
  if (verdicts.length === 0) return [];
  return [
    page.element("h2", {}, "Which policy is fastest"),
    termList(page, verdicts.map(({ load, text }) => [load, text, "line"] as const), {
      class: "won",
    }),
  ];
}

/** Loads side by side. */
function byLoad(all: readonly LoadSummary[], drawing: Drawing): PageNode[] {
  const { element } = drawing.page;
  const shown = all.filter(({ again }) => !again);
  const measures = MEASURES.filter(({ value }) => shown.some((one) => value(one) !== null));
  return [
    element("h2", {}, "By load"),
    policyLegend(shown, drawing),
    element(
      "div",
      { class: "small" },
      ...measures.map((measure) =>
        figure(
          drawing.page,
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
  const [{ label = "", rows: [row] = [] } = {}] = shown;
  const first = row?.timeline;
  const arrivals = row?.max_concurrency === null
    ? "Requests arrive at the same times for all policies."
    : `A request arrives when another one has ended: the arrivals are those of ${label}.`;
  const seen = shown.some(({ rows: [row] }) => (row?.rounds ?? 0) > 0);
  const tracks = TRACKS.filter(({ values }) =>
    shown.some(({ rows: [row] }) => row && values(row.timeline).some((value) => value !== null))
  );
  const both = (caption: string, draw: (width: number, name: string) => PageNode) =>
    wideFigure(drawing.page, caption, (width) => draw(width, `${caption}, ${load}`));
  return [
    element("h2", {}, `Over time: ${load}`),
    element("p", {}, `The first block. ${arrivals}`),
    policyLegend(shown, drawing),
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
          drawing.page,
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

function table(all: readonly LoadSummary[], page: PageMaker): PageNode[] {
  const columns = loadColumns(all);
  return [
    page.element("h2", { id: "rows" }, "All policies"),
    ...noteLines(all).map((line) => page.element("p", {}, `${line}.`)),
    pageTable(page, { id: "rows", columns, body: tableBody(page, columns, all) }),
  ];
}

function policyLegend(all: readonly LoadSummary[], { page, styles }: Drawing): PageNode {
  const labels = [...new Set(all.map(({ label }) => label))];
  return legend(
    page,
    labels.flatMap((label) => {
      const style = styles.get(label);
      return style ? [[label, swatch(style, page)] as const] : [];
    }),
  );
}
