import { breakEven } from "../../speculate/break_even.ts";
import { digits, ratioText } from "../formats.ts";
import { cellColumns, numbers } from "../table.ts";
import { documentText, type PageMaker, pageMaker, type PageNode } from "../page/dom.ts";
import { figure, legend, type PageFacts, pageHeader, pageTable, tableBody } from "../page/parts.ts";
import css from "../page/style.css" with { type: "text" };
import own from "./breakeven.css" with { type: "text" };
import { chart, type ChartPoint } from "./chart.ts";
import { control } from "./controls.ts";
import type { BreakEvenReport, Measured, MeasuredSteps } from "./measured.ts";
import { COST_COLUMNS, fitText, unsplitTexts } from "./text.ts";
import { type Sliders, type View, viewOf } from "./view.ts";
import { ROW_TITLES, wording } from "./wording.ts";

/** The curve by steps goes to at least this number of steps. */
const MAX_STEPS = 16;

/**
 * The HTML page of `eyrie breakeven`: one file, which loads nothing. Its script is the source of the functions that
 * compute the table here.
 */
export function breakEvenPage(report: BreakEvenReport, facts: PageFacts): string {
  const page = pageMaker();
  const sliders = slidersOf(report);
  const most = Math.max(MAX_STEPS, ...report.rows.map(({ steps }) => steps));
  const measured = pointsOf(report.measured);
  const equation = breakEven();
  const view = viewOf({ equation, wording: wording(equation), chart, most, measured });
  const main = page.element(
    "main",
    {},
    ...pageHeader(page, {
      title: "eyrie breakeven",
      simulated: report.measured?.simulated
        ? "SIMULATED acceptance: only the costs are measured"
        : undefined,
      terms: report.measured?.facts ?? [],
      facts,
    }),
    page.element("p", {}, EQUATION),
    ...playground(page, { view, sliders, most, report }),
    ...report.measured ? measuredSection(page, report.measured, report.rows) : [],
  );
  const title = `eyrie breakeven${
    report.measured ? `: ${Object.fromEntries(report.measured.facts)["model"]}` : ""
  }`;
  const script = scriptText(most, measured);
  return documentText({ title, css: css + own, main, script }, page);
}

/** The source of the functions that the browser runs. */
function scriptText(most: number, measured: readonly ChartPoint[]): string {
  return `const equation = (${breakEven})();
const wording = (${wording})(equation);
const chart = ${chart};
const [most, measured] = ${JSON.stringify([most, measured])};
const view = (${viewOf})({ equation, wording, chart, most, measured });
(${control})(document, view);`;
}

/**
 * The initial values of the sliders: the fastest number of steps, and alpha and costs rounded to the sliders' three
 * decimal places.
 */
function slidersOf({ alpha, costs, rows }: BreakEvenReport): Sliders {
  const steps = breakEven().best(rows)?.steps ?? rows[0]?.steps ?? 1;
  const rounded = (value: number) => Number(value.toFixed(3));
  return {
    alpha: rounded(alpha),
    steps,
    draft: rounded(costs.draft),
    verify: Math.max(0.001, rounded(costs.verify)),
  };
}

function pointsOf(measured: Measured | undefined): ChartPoint[] {
  return measured?.steps.map(({ steps, speedup: { ratio, low, high } }) => ({
    x: steps,
    y: ratio,
    low,
    high,
  })) ?? [];
}

const EQUATION =
  "A round drafts K tokens and verifies them in one forward pass. Each draft is accepted with " +
  "probability alpha after those before it, so a round gains n = (1 - alpha^(K+1)) / " +
  "(1 - alpha) tokens. It takes K times the draft cost c and once the verify cost v, both in " +
  "plain decoding steps: S\u00a0=\u00a0n\u00a0/\u00a0(K\u00a0c\u00a0+\u00a0v).";

/** The sliders, the results, the curves and the table that follow from them. */
function playground(
  page: PageMaker,
  { view, sliders, most, report }: {
    view: View;
    sliders: Sliders;
    most: number;
    report: BreakEvenReport;
  },
): PageNode[] {
  const { element } = page;
  const parts = view(sliders);
  const filled = (tag: string, id: string, attributes: Record<string, string> = {}) =>
    element(tag, { id, ...attributes }, page.markup(parts[id] ?? ""));
  const curve = (id: string, caption: string) => figure(page, caption, filled("div", id));
  const mark = (kind: string) => element("i", { class: kind });
  return [
    element("h2", { id: "play" }, "Where it pays"),
    element(
      "div",
      { class: "wide" },
      element(
        "div",
        {},
        slidersForm(page, { sliders, most, measured: report.measured !== undefined }),
        filled("p", "result", { role: "status" }),
        filled("dl", "verdict"),
        ...ownCosts(page, report),
        legend(page, [
          ["the sliders", mark("now")],
          ...report.measured ? [["measured here, 95 % interval", mark("measured")] as const] : [],
        ]),
      ),
      curve("by-steps", "Speed-up by steps; shaded: slower than plain decoding"),
      curve("by-alpha", "Speed-up by alpha; shaded: slower than plain decoding"),
      element(
        "div",
        {},
        element("h3", { id: "equation" }, "By steps"),
        pageTable(page, {
          id: "equation",
          columns: cellColumns(ROW_TITLES),
          body: filled("tbody", "rows"),
        }),
      ),
    ),
  ];
}

/** The verdict with the measured costs of each number of steps; the sliders have a single c and v. */
function ownCosts({ element }: PageMaker, { alpha, rows, measured }: BreakEvenReport): PageNode[] {
  if (measured === undefined) return [];
  const [[, best = ""] = []] = wording(breakEven()).verdict({ alpha, rows, costs: undefined });
  return [element("p", {}, `With the measured c and v of each K (cost table): best ${best}.`)];
}

function slidersForm(
  { element }: PageMaker,
  { sliders, most, measured }: { sliders: Sliders; most: number; measured: boolean },
): PageNode {
  const { alpha, steps, draft, verify } = sliders;
  const slider = (
    id: keyof Sliders,
    label: string,
    [min, max, step]: readonly [number, number, number],
  ) => {
    const value = sliders[id];
    const range = { min: String(min), max: String(max), step: String(step), value: String(value) };
    return [
      element("label", { for: id }, label),
      element("input", { id, type: "range", autocomplete: "off", ...range }),
      element(
        "output",
        { id: `${id}-value`, for: id },
        id === "steps" ? String(value) : value.toFixed(3),
      ),
    ];
  };
  return element(
    "form",
    { id: "sliders", "aria-labelledby": "play" },
    ...slider("alpha", "alpha, a draft is accepted", [0, Math.max(1, alpha), 0.001]),
    ...slider("steps", "K, steps drafted", [1, Math.max(most, steps), 1]),
    ...slider("draft", "c, draft cost", [0, Math.max(1, Math.ceil(draft)), 0.001]),
    ...slider("verify", "v, verify cost", [
      Math.min(0.5, verify),
      Math.max(4, Math.ceil(verify)),
      0.001,
    ]),
    element("button", { type: "reset" }, measured ? "As measured" : "As given"),
  );
}

function measuredSection(
  page: PageMaker,
  measured: Measured,
  rows: BreakEvenReport["rows"],
): PageNode[] {
  const { element } = page;
  const speedups = new Map(measured.steps.map((one, at) => [one, rows[at]?.speedup]));
  const columns = [
    ...COST_COLUMNS,
    numbers("S", (one: MeasuredSteps) => speedups.get(one), (value) => `${value.toFixed(2)}x`),
  ];
  const paragraphs = [
    `${fitText(measured)}.`,
    ...unsplitTexts(measured),
    `A plain decoding step takes ${
      digits(measured.plainMs)
    } ms; plain decoding against itself is ` +
    `${ratioText(measured.noise)}. Draft ms: K forwards of the draft head, draft-extend among ` +
    "them. Verify ms: one forward of the model over K + 1 rows, and the host. Medians. S: the " +
    "equation with the row's own c and v. The sliders begin at those of the fastest steps: where v grows " +
    "with K, their curve is too high for more steps and too low for fewer.",
  ];
  return [
    element("h2", {}, "Measured here"),
    ...paragraphs.map((text) => element("p", {}, text)),
    element(
      "div",
      {},
      element("h3", { id: "costs" }, "Cost table"),
      pageTable(page, { id: "costs", columns, body: tableBody(page, columns, measured.steps) }),
    ),
  ];
}
