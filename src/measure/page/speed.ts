import { barX, dot, gridX, gridY, lineY, type Markish, rect } from "@observablehq/plot";
import { ruleX, ruleY, tickX } from "@observablehq/plot";
import { digits, ratioText } from "../formats.ts";
import { type BenchRow, isDrafting } from "../row.ts";
import { positiveInterval } from "../statistics.ts";
import type { PageNode } from "./dom.ts";
import { type Drawing, namesAxis, seriesScales, type Sized } from "./series.ts";

/** The most pixels between settings of one batch size, which are moved apart so that their intervals do not overlap. */
const DODGE = 12;
/** The part of the space of a batch size over which its settings are spread. */
const SPREAD = 0.6;
const MARGIN = 52;
const TALL = 320;

const ratioTick = (value: number) => `${Number(value.toFixed(2))}x`;
const heightOf = (bars: number) => 60 + 32 * bars;
const HALO = { stroke: "var(--paper)", strokeWidth: 4 } as const;

/** A chart of tokens/s with 95 % intervals of the mean: bars for one batch size, lines for several. */
export function throughputChart(rows: readonly BenchRow[], options: Drawing & Sized): PageNode {
  const speeds = rows.filter(({ setting_kind }) => setting_kind !== "plain again").map(speedOf);
  return sizesOf(rows).length === 1 ? speedBars(speeds, options) : speedLines(speeds, options);
}

type Speed = ReturnType<typeof speedOf>;

function speedOf({ batch, setting, tokens_per_second }: BenchRow) {
  const { mean, sd, samples } = tokens_per_second;
  const { low, high, cut } = positiveInterval(samples) ?? { low: mean, high: mean, cut: false };
  const title = `${setting}, batch ${batch}\n${digits(mean)} tokens/s` +
    (sd === null ? "" : ` ± ${digits(sd)}`) + (cut ? ", its interval reaches below 0" : "");
  return { batch, setting, mean, low, high, cut, title };
}

/** The chart for a single batch size. */
function speedBars(
  speeds: readonly Speed[],
  { page, styles, width, name }: Drawing & Sized,
): PageNode {
  return page.chart({
    width,
    height: heightOf(speeds.length),
    ...namesAxis(speeds),
    x: { label: "tokens/s", domain: [0, topOf(speeds)], nice: true, ticks: 5 },
    color: seriesScales(styles).color,
    marks: [
      gridX({ ticks: 5 }),
      barX(speeds, {
        x: "mean",
        y: "setting",
        fill: "setting",
        title: "title",
        insetTop: 4,
        insetBottom: 4,
      }),
      ruleY(speeds, { y: "setting", x1: "low", x2: "high", ...HALO }),
      ruleY(speeds, { y: "setting", x1: "low", x2: "high", stroke: "var(--ink)" }),
      ...ends(speeds),
      ruleX([0]),
    ],
  }, name);
}

/** Ends of horizontal intervals; an arrow where one is cut off at 0. */
function ends(
  speeds: readonly { setting: string; low: number | null; high: number | null; cut: boolean }[],
): Markish[] {
  const whole = speeds.filter(({ cut }) => !cut);
  const place = { y: "setting", stroke: "var(--ink)", insetTop: 10, insetBottom: 10 } as const;
  return [
    tickX(speeds, { ...place, x: "high" }),
    tickX(whole, { ...place, x: "low" }),
    dot(speeds.filter(({ cut }) => cut), {
      x: "low",
      y: "setting",
      symbol: "triangle",
      rotate: -90,
      r: 4,
      fill: "var(--ink)",
    }),
  ];
}

/** The chart for several batch sizes. */
function speedLines(
  speeds: readonly Speed[],
  { page, styles, width, name }: Drawing & Sized,
): PageNode {
  const settings = [...new Set(speeds.map(({ setting }) => setting))];
  // Settings times batch sizes, nearly: one may be missing after Ctrl+C.
  const dodge = Math.min(DODGE, SPREAD * (width - 1.5 * MARGIN) / speeds.length);
  const marks = settings.flatMap((setting, at) => {
    const points = speeds.filter((speed) => speed.setting === setting);
    const dx = (at - (settings.length - 1) / 2) * dodge;
    const place = { x: "batch", stroke: "setting", dx } as const;
    const strokeDasharray = styles.get(setting)?.dash ?? "";
    return [
      lineY(points, { ...place, y: "mean", strokeOpacity: 0.6, strokeDasharray }),
      ruleX(points, { ...place, y1: "low", y2: "high", strokeWidth: 1.5 }),
      dot(points.filter(({ cut }) => cut), {
        x: "batch",
        y: "low",
        dx,
        symbol: "triangle",
        rotate: 180,
        r: 3,
        fill: "setting",
      }),
      dot(points, {
        x: "batch",
        y: "mean",
        dx,
        r: 4,
        fill: "setting",
        symbol: "setting",
        title: "title",
      }),
    ];
  });
  return page.chart({
    width,
    height: TALL,
    marginLeft: MARGIN,
    ...seriesScales(styles),
    x: { type: "point", label: "batch size" },
    y: { label: "tokens/s", domain: [0, topOf(speeds)], nice: true, ticks: 6 },
    marks: [gridY({ ticks: 6 }), ruleY([0]), ...marks],
  }, name);
}

function topOf(speeds: readonly Speed[]): number {
  return Math.max(...speeds.map(({ high }) => high));
}

function sizesOf(rows: readonly BenchRow[]): number[] {
  return [...new Set(rows.map(({ batch }) => batch))];
}

/** A chart of the speed over plain decoding with 95 % intervals; the band is that of plain decoding against itself. */
export function speedupChart(rows: readonly BenchRow[], options: Drawing & Sized): PageNode {
  const speedups = speedupsOf(rows);
  return sizesOf(rows).length === 1 ? speedupRows(speedups, options) : facets(speedups, options);
}

type Speedups = ReturnType<typeof speedupsOf>;

function speedupsOf(rows: readonly BenchRow[]) {
  const points = rows.filter(isDrafting)
    .map(({ batch, setting, speedup }) => ({
      batch,
      setting,
      ...speedup,
      cut: false,
      title: `${setting}, batch ${batch}\n${ratioText(speedup, "x plain")}`,
    }));
  const noise = rows.filter(({ setting_kind }) => setting_kind === "plain again")
    .map(({ batch, speedup }) => ({ batch, ...speedup, title: `noise\n${ratioText(speedup)}` }));
  return { points, noise };
}

const PLAIN_RULE = { stroke: "var(--plain)", strokeDasharray: "4 3" } as const;

/** The chart for a single batch size. */
function speedupRows(
  { points, noise }: Speedups,
  { page, styles, width, name }: Drawing & Sized,
): PageNode {
  return page.chart({
    width,
    height: heightOf(points.length),
    ...seriesScales(styles),
    ...namesAxis(points),
    x: { label: "speed over plain", nice: true, ticks: 5, tickFormat: ratioTick },
    marks: [
      gridX({ ticks: 5 }),
      rect(noise, { x1: "low", x2: "high", fill: "var(--noise)", title: "title" }),
      ruleX([1], PLAIN_RULE),
      ruleY(points, { y: "setting", x1: "low", x2: "high", stroke: "setting", strokeWidth: 2 }),
      ...ends(points),
      dot(points, {
        x: "ratio",
        y: "setting",
        r: 5,
        fill: "setting",
        symbol: "setting",
        title: "title",
      }),
    ],
  }, name);
}

/** The chart for several batch sizes. */
function facets(
  { points, noise }: Speedups,
  { page, styles, width, name }: Drawing & Sized,
): PageNode {
  return page.chart({
    width,
    height: TALL,
    marginLeft: MARGIN,
    ...seriesScales(styles),
    fx: { label: "batch size", padding: 0.15 },
    x: { type: "point", axis: null, domain: [...new Set(points.map(({ setting }) => setting))] },
    y: { label: "speed over plain", nice: true, ticks: 6, tickFormat: ratioTick },
    marks: [
      gridY({ ticks: 6 }),
      rect(noise, { fx: "batch", y1: "low", y2: "high", fill: "var(--noise)", title: "title" }),
      ruleY([1], PLAIN_RULE),
      ruleX(points, {
        fx: "batch",
        x: "setting",
        y1: "low",
        y2: "high",
        stroke: "setting",
        strokeWidth: 1.5,
      }),
      dot(points, {
        fx: "batch",
        x: "setting",
        y: "ratio",
        r: 4,
        fill: "setting",
        symbol: "setting",
        title: "title",
      }),
    ],
  }, name);
}
