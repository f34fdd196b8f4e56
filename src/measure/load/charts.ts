import { areaY, cell, gridY, lineY, ruleY, text } from "@observablehq/plot";
import { percentText } from "../../text/numbers.ts";
import { digits } from "../formats.ts";
import type { PageNode } from "../page/dom.ts";
import { type Drawing, seriesMarks, seriesScales, type Sized } from "../page/series.ts";
import type { LoadSummary } from "./summary.ts";
import type { LoadTimeline } from "./timeline.ts";

const HEIGHT = 220;
const MARGIN = 48;

/** A value that is drawn over time, with a line for each policy. */
export interface Track {
  readonly caption: string;
  readonly label: string;
  readonly values: (timeline: LoadTimeline) => readonly (number | null)[];
  /** A value holds until the next one, also while no request runs. */
  readonly lasting?: true;
}

/** The charts over time. */
export const TRACKS: readonly Track[] = [
  {
    caption: "Throughput",
    label: "output tokens/s",
    values: (timeline) => timeline.output_throughput,
  },
  {
    caption: "Queue",
    label: "requests that wait",
    values: (timeline) => timeline.queue,
  },
  {
    caption: "Batch",
    label: "requests in a round",
    values: (timeline) => timeline.batch,
  },
  {
    caption: "Draft steps",
    label: "steps chosen, mean",
    values: (timeline) => timeline.num_steps,
    lasting: true,
  },
];

/** A chart of the arrivals per second, which are the same for all policies. */
export function arrivalsChart(
  timeline: LoadTimeline,
  { page, width, name }: Drawing & Sized,
): PageNode {
  const points = pointsOf(timeline, timeline.arrival_rate);
  const place = { x: "t", y: "value", curve: "step-after" } as const;
  return page.chart({
    width,
    height: HEIGHT,
    marginLeft: MARGIN,
    x: { label: "seconds", zero: true },
    y: { label: "requests/s that arrive", zero: true, nice: true, ticks: 5 },
    marks: [
      gridY({ ticks: 5 }),
      areaY(points, { ...place, fill: "var(--tier)", fillOpacity: 0.25 }),
      lineY(points, { ...place, stroke: "var(--tier)" }),
      ruleY([0]),
    ],
  }, name);
}

/** A chart of one track with a line for each policy, from its first block. */
export function trackChart(
  all: readonly LoadSummary[],
  track: Track,
  { page, styles, width, name }: Drawing & Sized,
): PageNode {
  const lines = all.flatMap(({ label, rows: [row] }) =>
    row === undefined
      ? []
      : [[label, pointsOf(row.timeline, valuesOf(row.timeline, track))] as const]
  );
  return page.chart({
    width,
    height: HEIGHT,
    marginLeft: MARGIN,
    x: { label: "seconds", zero: true },
    y: { label: track.label, zero: true, nice: true, ticks: 5 },
    color: seriesScales(styles).color,
    marks: [
      gridY({ ticks: 5 }),
      ruleY([0]),
      ...lines.map(([label, points]) =>
        lineY(points, {
          x: "t",
          y: "value",
          stroke: styles.get(label)?.colour ?? "currentColor",
          strokeDasharray: styles.get(label)?.dash ?? "",
          ...track.lasting ? { curve: "step-after" as const } : {},
        })
      ),
    ],
  }, name);
}

function valuesOf(timeline: LoadTimeline, { values, lasting }: Track) {
  let last: number | null = null;
  return values(timeline).map((value) => {
    last = value ?? (lasting ? last : null);
    return last;
  });
}

/** A point at the beginning of each interval, in seconds; NaN, which draws a gap, if nothing was measured. */
function pointsOf({ width_ms }: LoadTimeline, values: readonly (number | null)[]) {
  return values.map((value, i) => ({ t: i * width_ms / 1000, value: value ?? NaN }));
}

/** A chart of the share of rounds with each number of draft steps, by batch size. */
export function choicesChart(
  { label, stepsByBatch }: LoadSummary,
  { page, steps, name }: Drawing & { readonly steps: readonly number[]; readonly name: string },
): PageNode {
  const cells = Object.entries(stepsByBatch).flatMap(([batch, counts]) => {
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    return Object.entries(counts).map(([step, count]) => ({
      batch: +batch,
      step: +step,
      share: count / total,
      title: `${label}\nbatch ${batch}, ${step} steps\n${percentText(count / total)} of ` +
        `${total} rounds`,
    }));
  });
  const batches = [...new Set(cells.map(({ batch }) => batch))].toSorted((a, b) => a - b);
  return page.chart({
    width: 360,
    height: 60 + 24 * steps.length,
    marginLeft: 36,
    x: { type: "band", label: "requests in a round", domain: batches },
    y: { type: "band", label: "steps", domain: steps.toReversed() },
    marks: [
      cell(cells, {
        x: "batch",
        y: "step",
        title: "title",
        inset: 1,
        fill: "var(--verify)",
        fillOpacity: "share",
      }),
      text(cells.filter(({ share }) => share >= 0.1 && batches.length <= 10), {
        x: "batch",
        y: "step",
        fontSize: 9,
        fill: "var(--ink)",
        stroke: "var(--paper)",
        text: ({ share }: { share: number }) => `${Math.round(share * 100)}`,
      }),
    ],
    opacity: { type: "linear", domain: [0, 1], range: [0.06, 0.75] },
  }, name);
}

/** A value that is compared between loads. */
export interface Measure {
  readonly caption: string;
  readonly label: string;
  readonly value: (one: LoadSummary) => number | null;
}

/** The charts by load. */
export const MEASURES: readonly Measure[] = [
  {
    caption: "Throughput",
    label: "output tokens/s",
    value: ({ outputThroughput }) => outputThroughput,
  },
  { caption: "End to end, p50", label: "ms", value: ({ e2el }) => e2el.p50 },
  { caption: "Time to the first token, p99", label: "ms", value: ({ ttft }) => ttft.p99 },
  { caption: "Time per output token, p50", label: "ms", value: ({ tpot }) => tpot.p50 },
  {
    caption: "Goodput",
    label: "requests/s that meet the objectives",
    value: ({ goodput }) => goodput,
  },
];

/** A chart of one measure by load, in the order of the loads, with a line for each policy. */
export function byLoadChart(
  all: readonly LoadSummary[],
  measure: Measure,
  { page, styles, name }: Drawing & { readonly name: string },
): PageNode {
  const points = all.map((one) => ({
    load: one.load,
    label: one.label,
    value: measure.value(one) ?? NaN,
    title: `${one.label}\n${one.load}\n${digits(measure.value(one) ?? NaN)} ${measure.label}`,
  }));
  return page.chart({
    width: 360,
    height: HEIGHT,
    marginLeft: MARGIN,
    ...seriesScales(styles),
    x: { type: "point", label: null, domain: [...new Set(all.map(({ load }) => load))] },
    y: { label: measure.label, zero: true, nice: true, ticks: 5 },
    marks: [
      gridY({ ticks: 5 }),
      ruleY([0]),
      ...seriesMarks(points, { x: "load", y: "value", series: "label" }, styles),
    ],
  }, name);
}
