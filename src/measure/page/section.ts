import type { Group } from "../cases.ts";
import { type BenchRow, isAdaptive, isDrafting } from "../row.ts";
import { sum } from "../statistics.ts";
import type { PageNode } from "./dom.ts";
import { figure, legend, wideFigure } from "./parts.ts";
import { PARTS, positionChart, timelineChart, timeSplitChart } from "./drafting.ts";
import { type Drawing, swatch } from "./series.ts";
import { speedupChart, throughputChart } from "./speed.ts";

/** The most timelines in a section; later ones look the same. */
const TIMELINES = 12;

/** The section of charts for rows that differ only in batch size and setting. */
export function section({ title, rows }: Group, drawing: Drawing): PageNode[] {
  const { page: { element }, styles } = drawing;
  const both = (caption: string, draw: typeof speedupChart) => {
    const name = title === "" ? caption : `${caption}, ${title}`;
    return wideFigure(
      drawing.page,
      caption,
      (width) => draw(rows, { ...drawing, width, name }),
    );
  };
  const drawn = rows.filter(({ setting_kind }) => setting_kind !== "plain again");
  const entries = [...styles].filter(([name]) => drawn.some(({ setting }) => setting === name))
    .map(([name, style]) => [name, swatch(style, drawing.page)] as const);
  return [
    element("h2", {}, title === "" ? "Speed" : `Speed: ${title}`),
    legend(drawing.page, entries),
    element(
      "div",
      { class: "wide" },
      both("Tokens/s, 95 % intervals", throughputChart),
      ...rows.some(isDrafting)
        ? [both("Speed over plain, 95 % intervals; band: A/A noise", speedupChart)]
        : [],
    ),
    element(
      "div",
      { class: "parts" },
      ...[timelines(rows, drawing), positions(rows, drawing), timeSplits(rows, drawing)]
        .filter((part) => part !== undefined),
    ),
  ];
}

/** Timelines of policies, or of the fixed setting with the most steps if there are none. */
function timelines(rows: readonly BenchRow[], drawing: Drawing): PageNode | undefined {
  const adaptive = rows.filter(isAdaptive);
  const most = Math.max(...rows.map(({ num_steps }) => num_steps ?? 0));
  const deepest = rows.filter(({ num_steps }) => most > 0 && num_steps === most);
  const shown = (adaptive.length > 0 ? adaptive : deepest)
    .filter(({ timeline }) => timeline.accept.length > 0)
    .slice(0, TIMELINES);
  const tops = shown.flatMap(({ timeline }) => [
    ...timeline.accept.map(({ length }) => length),
    ...timeline.steps.map(({ num_steps }) => num_steps + 1),
  ]);
  const top = Math.ceil(Math.max(1, ...tops));
  return part(drawing, {
    title: "Accept length over time",
    text:
      "Line: tokens a request gains in a round. Grey steps: the tier, drafts made in a round. First block.",
    charts: shown.map((row) => ({
      caption: `${row.setting}, batch ${row.batch}`,
      draw: (name) => timelineChart(row, { ...drawing, top, name }),
    })),
  });
}

function positions(rows: readonly BenchRow[], drawing: Drawing): PageNode | undefined {
  const drafting = rows.filter(({ acceptance_per_position }) => acceptance_per_position.length > 0);
  return part(drawing, {
    title: "Acceptance by position",
    text:
      "Of the rounds that verified a draft at a position, the share that accepted it. A policy drafts deep where drafts fare well: its line may rise.",
    charts: byBatch(drafting, (rows, name) => positionChart(rows, { ...drawing, name })),
  });
}

function timeSplits(rows: readonly BenchRow[], drawing: Drawing): PageNode | undefined {
  const top = Math.max(
    ...rows.map(({ round_ms }) => sum(PARTS.map((part) => round_ms[part]))),
  );
  const { element } = drawing.page;
  const entries = PARTS.map((part) =>
    [part, element("i", { style: `background: var(--${part})` })] as const
  );
  return part(drawing, {
    title: "Where a round's time goes",
    text: `Each bar from left to right: ${PARTS.join(", ")}.`,
    legend: legend(drawing.page, entries),
    charts: byBatch(rows, (rows, name) => timeSplitChart(rows, { ...drawing, top, name })),
  });
}

interface Chart {
  readonly caption: string;
  readonly draw: (name: string) => PageNode;
}

function byBatch(
  rows: readonly BenchRow[],
  draw: (rows: readonly BenchRow[], name: string) => PageNode,
): Chart[] {
  return [...Map.groupBy(rows, ({ batch }) => batch)].map(([batch, rows]) => ({
    caption: `batch ${batch}`,
    draw: (name) => draw(rows, name),
  }));
}

/** Small charts under a heading; undefined if there are no charts. */
function part(
  drawing: Drawing,
  { title, text, legend, charts }: {
    title: string;
    text: string;
    legend?: PageNode;
    charts: readonly Chart[];
  },
): PageNode | undefined {
  if (charts.length === 0) return undefined;
  const { element } = drawing.page;
  const figures = charts.map(({ caption, draw }) =>
    figure(drawing.page, caption, draw(`${title}, ${caption}`))
  );
  return element(
    "section",
    { class: charts.length === 1 ? "one" : "many" },
    element("h3", {}, title),
    element("p", {}, text),
    ...legend === undefined ? [] : [legend],
    element("div", { class: "small" }, ...figures),
  );
}
