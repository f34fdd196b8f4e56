import { dot, gridY, lineY, type Markish, rect, ruleX, ruleY } from "@observablehq/plot";
import { digits, ratioText } from "../columns.ts";
import type { BenchRow } from "../row.ts";
import { interval } from "../statistics.ts";
import { type Colours, colourScale } from "./colours.ts";
import type { PageMaker, PageNode } from "./dom.ts";

/** Pixels between the settings of one batch size, so that their intervals do not overlap. */
const DODGE = 4;

/** Tokens/s by batch size, a line a setting, with 95 % intervals of the mean. */
export function throughputChart(
  rows: readonly BenchRow[],
  { page, colours, width }: { page: PageMaker; colours: Colours; width: number },
): PageNode {
  const settings = [...colours.keys()].filter((setting) =>
    rows.some((row) => row.setting === setting && row.setting_kind !== "plain again")
  );
  const marks = settings.flatMap((setting, at) =>
    throughputMarks(rows.filter((row) => row.setting === setting), {
      dx: (at - (settings.length - 1) / 2) * DODGE,
    })
  );
  return page.chart({
    width,
    height: 320,
    marginLeft: 48,
    x: { type: "point", label: "batch size" },
    y: { label: "tokens/s", zero: true, ticks: 6 },
    color: colourScale(colours),
    marks: [gridY({ ticks: 6 }), ruleY([0]), ...marks],
  });
}

function throughputMarks(rows: readonly BenchRow[], { dx }: { dx: number }): Markish[] {
  const points = rows.map(({ batch, setting, setting_kind, tokens_per_second }) => {
    const { mean, sd, samples } = tokens_per_second;
    const { low, high } = interval(samples) ?? { low: mean, high: mean };
    const title = `${setting}, batch ${batch}\n${digits(mean)} tokens/s` +
      (sd === null ? "" : ` ± ${digits(sd)}`);
    return { batch, setting, setting_kind, mean, low, high, title };
  });
  const place = { x: "batch", stroke: "setting", dx } as const;
  return [
    lineY(points, { ...place, y: "mean", strokeOpacity: 0.45 }),
    ruleX(points, { ...place, y1: "low", y2: "high", strokeWidth: 1.5 }),
    dot(points, {
      x: "batch",
      y: "mean",
      fill: "setting",
      symbol: symbol(rows),
      dx,
      title: "title",
    }),
  ];
}

function symbol(rows: readonly BenchRow[]): "circle" | "diamond" {
  return rows[0]?.setting_kind === "preset" ? "diamond" : "circle";
}

/** Speed-up over plain decoding with 95 % intervals; the band is plain against itself. */
export function speedupChart(
  rows: readonly BenchRow[],
  { page, colours, width }: { page: PageMaker; colours: Colours; width: number },
): PageNode {
  const { points, noise } = speedups(rows);
  return page.chart({
    width,
    height: 320,
    marginLeft: 48,
    fx: { label: "batch size", padding: 0.15 },
    x: { type: "point", axis: null, domain: [...new Set(points.map(({ setting }) => setting))] },
    y: {
      label: "speed-up over plain",
      nice: true,
      tickFormat: (value: number) => `${Number(value.toFixed(2))}x`,
    },
    color: colourScale(colours),
    symbol: { type: "identity" },
    marks: [
      gridY(),
      rect(noise, { fx: "batch", y1: "low", y2: "high", fill: "var(--noise)", title: "title" }),
      ruleY([1], { stroke: "var(--plain)", strokeDasharray: "4 3" }),
      ruleX(points, {
        ...{ fx: "batch", x: "setting", y1: "low", y2: "high" },
        ...{ stroke: "setting", strokeWidth: 1.5 },
      }),
      dot(points, {
        ...{ fx: "batch", x: "setting", y: "ratio", r: 4 },
        ...{ fill: "setting", symbol: "symbol", title: "title" },
      }),
    ],
  });
}

function speedups(rows: readonly BenchRow[]) {
  const points = rows.filter(({ setting_kind }) => !setting_kind.startsWith("plain"))
    .map(({ batch, setting, setting_kind, speedup }) => ({
      batch,
      setting,
      ...speedup,
      symbol: setting_kind === "preset" ? "diamond" : "circle",
      title: `${setting}, batch ${batch}\n${ratioText(speedup)} plain`,
    }));
  const noise = rows.filter(({ setting_kind }) => setting_kind === "plain again")
    .map(({ batch, speedup }) => ({ batch, ...speedup, title: `noise\n${ratioText(speedup)}` }));
  return { points, noise };
}
