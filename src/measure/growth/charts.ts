import { gridY, lineY, ruleY } from "@observablehq/plot";
import { digits } from "../formats.ts";
import type { PageNode } from "../page/dom.ts";
import { type Drawing, seriesMarks, seriesScales } from "../page/series.ts";
import { type GrowthRow, valueOf } from "./row.ts";

/** What the charts are drawn with. */
export interface GrowthDrawing extends Drawing {
  /** The name of the series of a row. */
  readonly nameOf: (row: GrowthRow) => string;
}

/** The value of each row that a chart shows; null if a row has no such value. */
interface Measure {
  readonly caption: string;
  readonly label: string;
  readonly kind: GrowthRow["kind"];
  readonly value: (row: GrowthRow) => number | null;
  /** A second value, drawn as a thin line. */
  readonly floor?: (row: GrowthRow) => number | null;
}

const MEASURES: readonly Measure[] = [
  {
    caption: "A step on the device; thin: its floor",
    label: "ms",
    kind: "round",
    value: ({ device_ms, ms }) => device_ms ?? ms,
    floor: ({ floor_ms }) => floor_ms,
  },
  {
    caption: "The device's time over the floor",
    label: "times",
    kind: "round",
    value: ({ over_floor }) => over_floor,
  },
  { caption: "Host", label: "ms", kind: "round", value: ({ host_ms }) => host_ms },
  {
    caption: "Verify rows of all sequences",
    label: "rows/s",
    kind: "round",
    value: ({ rows_per_second }) => rows_per_second,
  },
  {
    caption: "Memory, predicted",
    label: "GB",
    kind: "round",
    value: ({ memory }) => memory.total / 1e9,
  },
  {
    caption: "Prefill of the last tokens of a context",
    label: "tokens/s",
    kind: "prefill",
    value: ({ rows_per_second }) => rows_per_second,
  },
];

const WIDTH = 360;
const HEIGHT = 240;
const MARGIN = 52;

/** The charts of one axis, with a line for each model. A chart for which no row has a value is left out. */
export function chartsOf(
  rows: readonly GrowthRow[],
  drawing: GrowthDrawing,
): { readonly caption: string; readonly chart: PageNode }[] {
  return MEASURES.flatMap((measure) => {
    const own = rows.filter((row) => row.kind === measure.kind && measure.value(row) !== null);
    if (own.length === 0) return [];
    return [{ caption: measure.caption, chart: growthChart(own, measure, drawing) }];
  });
}

function growthChart(
  rows: readonly GrowthRow[],
  { caption, label, value, floor }: Measure,
  { page, styles, nameOf }: GrowthDrawing,
): PageNode {
  const [{ axis }] = rows as [GrowthRow];
  const points = (of: Measure["value"]) =>
    rows.flatMap((row) => {
      const y = of(row);
      const name = nameOf(row);
      const title = `${name}\n${axis} ${valueOf(row)}\n${digits(y ?? 0)} ${label}`;
      return y === null ? [] : [{ x: valueOf(row), y, name, title }];
    });
  const measured = points(value);
  const least = floor ? points(floor) : [];
  const values = [...new Set(rows.map(valueOf))].toSorted((a, b) => a - b);
  return page.chart({
    width: WIDTH,
    height: HEIGHT,
    marginLeft: MARGIN,
    ...seriesScales(styles),
    // Values that double are as far apart as those from 0 to the first.
    x: { type: "point", label: axis, domain: values },
    y: { label, zero: true, nice: true, ticks: 5 },
    marks: [
      gridY({ ticks: 5 }),
      ruleY([0]),
      ...[...Map.groupBy(least, ({ name }) => name).values()].map((floors) =>
        lineY(floors, { x: "x", y: "y", stroke: "name", strokeWidth: 1, strokeOpacity: 0.5 })
      ),
      ...seriesMarks(measured, { x: "x", y: "y", series: "name" }, styles),
    ],
  }, `${caption} by ${axis}`);
}
