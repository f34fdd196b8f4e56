import { areaY, barX, gridX, gridY, lineY, ruleX, ruleY } from "@observablehq/plot";
import { percentText } from "../../text/numbers.ts";
import { digits } from "../formats.ts";
import type { BenchRow } from "../row.ts";
import type { PageMaker, PageNode } from "./dom.ts";
import { namesAxis, seriesMarks, seriesScales, type SeriesStyles } from "./series.ts";

/** Small charts stand side by side, one below the other on a phone. */
const SMALL = { width: 360, height: 220 } as const;

interface Named {
  readonly page: PageMaker;
  /** The label of the chart for screen readers. */
  readonly name: string;
}

/** A chart of a row over time: the accept length as a line, the draft steps of the tier as an area. */
export function timelineChart(
  row: BenchRow,
  { page, styles, top, name }: Named & { styles: SeriesStyles; top: number },
): PageNode {
  const { timeline, setting } = row;
  const accept = timeline.accept.map(({ t_ms, length }) => ({ t: t_ms / 1000, length }));
  const steps = timeline.steps.map(({ t_ms, num_steps }) => ({ t: t_ms / 1000, num_steps }));
  const ticks = Math.min(top, 5); // whole numbers
  const tier = { x: "t", y: "num_steps", curve: "step-after" } as const;
  return page.chart({
    ...SMALL,
    marginLeft: 32,
    x: { label: "seconds", zero: true },
    y: { label: "tokens a round; draft steps", domain: [0, top], ticks, tickFormat: "d" },
    marks: [
      gridY({ ticks }),
      areaY(steps, { ...tier, fill: "var(--tier)", fillOpacity: 0.25 }),
      lineY(steps, { ...tier, stroke: "var(--tier)" }),
      lineY(accept, { x: "t", y: "length", stroke: styles.get(setting)?.colour ?? "currentColor" }),
      ruleY([0]),
    ],
  }, name);
}

/** A chart of the share of rounds that accepted the draft at each position, with a line for each setting. */
export function positionChart(
  rows: readonly BenchRow[],
  { page, styles, name }: Named & { styles: SeriesStyles },
): PageNode {
  const points = rows.flatMap(({ setting, acceptance_per_position }) =>
    acceptance_per_position.map((share, at) => ({
      setting,
      position: at + 1,
      share,
      title: `${setting}, position ${at + 1}\n${percentText(share)} accepted`,
    }))
  );
  return page.chart({
    ...SMALL,
    marginLeft: 36,
    x: { type: "point", label: "draft position" },
    y: { label: "accepted, %", domain: [0, 100], percent: true, ticks: 5 },
    ...seriesScales(styles),
    marks: [
      gridY({ ticks: 5 }),
      ruleY([0]),
      ...seriesMarks(points, { x: "position", y: "share", series: "setting" }, styles),
    ],
  }, name);
}

/** The parts of a round in their order. */
export const PARTS = ["draft", "verify", "extend", "host"] as const;

/** A chart of the milliseconds of a round by part, with a bar for each setting. */
export function timeSplitChart(
  rows: readonly BenchRow[],
  { page, top, name }: Named & { top: number },
): PageNode {
  const bars = rows.flatMap(({ setting, round_ms }) =>
    PARTS.map((part) => ({
      setting,
      part,
      ms: round_ms[part],
      title: `${setting}\n${part} ${digits(round_ms[part])} ms of ${digits(round_ms.total)} ms`,
    }))
  );
  return page.chart({
    width: SMALL.width,
    height: 60 + 26 * rows.length,
    ...namesAxis(rows),
    x: { label: "ms a round", domain: [0, top], ticks: 5 },
    color: { domain: [...PARTS], range: PARTS.map((part) => `var(--${part})`) },
    marks: [
      gridX({ ticks: 5 }),
      barX(bars, {
        x: "ms",
        y: "setting",
        fill: "part",
        stroke: "var(--paper)",
        title: "title",
        insetTop: 2,
        insetBottom: 2,
      }),
      ruleX([0]),
    ],
  }, name);
}
