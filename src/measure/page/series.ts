import { dot, lineX, lineY, type Markish, type SymbolType } from "@observablehq/plot";
import { shortName } from "../formats.ts";
import { type BenchRow, isAdaptive, isDrafting } from "../row.ts";
import type { PageMaker, PageNode } from "./dom.ts";

/** How a series is drawn. Symbols and dashes tell series apart as well as colours do. */
export interface SeriesStyle {
  /** A CSS value that follows the page's theme. */
  readonly colour: string;
  readonly symbol: SymbolType;
  /** SVG's stroke-dasharray; empty for a solid line. */
  readonly dash: string;
}

/** SeriesStyles by the name of the series. */
export type SeriesStyles = ReadonlyMap<string, SeriesStyle>;

/** What the charts of a page are drawn with. */
export interface Drawing {
  readonly page: PageMaker;
  readonly styles: SeriesStyles;
}

/** The size and the name of a chart. */
export interface Sized {
  /** Width in pixels. */
  readonly width: number;
  /** The label of the chart for screen readers. */
  readonly name: string;
}

/** The number of hues in style.css for series without an order. Further series begin again with other dashes. */
const HUES = 4;
const SYMBOLS = ["square", "triangle", "diamond", "star", "cross", "wye"] as const;
const DASHES = ["", "6 3", "2 2", "8 3 2 3", "10 4"] as const;

/** The symbol and the dashes of plain decoding. */
export const PLAIN_PATTERN = { symbol: "circle", dash: "1 3" } as const;

/** The hue of the series at this place. */
export function hueAt(at: number): string {
  return `var(--policy-${at % HUES + 1})`;
}

/**
 * The symbol and the dashes of the series at this place. Both begin again after the last one; as there are 6 symbols
 * and 5 dashes, which have no common factor, no two of 30 series have the same of both.
 */
export function patternAt(
  at: number,
  symbols: readonly SymbolType[] = SYMBOLS,
): Pick<SeriesStyle, "symbol" | "dash"> {
  return {
    symbol: symbols[at % symbols.length] ?? "square",
    dash: DASHES[at % DASHES.length] ?? "",
  };
}

/**
 * The styles of all settings: plain decoding is grey, fixed steps and trees go from light to dark in the order of the
 * rows, and policies have hues of their own.
 */
export function settingStyles(rows: readonly BenchRow[]): SeriesStyles {
  const settings = [...new Map(rows.map((row) => [row.setting, row])).values()];
  const drafting = settings.filter(isDrafting);
  return new Map(settings.map((row) => {
    const colour = colourOf(row, settings);
    const at = drafting.indexOf(row);
    return [row.setting, { colour, ...at < 0 ? PLAIN_PATTERN : patternAt(at) }];
  }));
}

function colourOf(row: BenchRow, settings: readonly BenchRow[]): string {
  const alike = settings.filter((other) =>
    other.setting_kind === row.setting_kind || (isAdaptive(other) && isAdaptive(row))
  );
  const at = alike.indexOf(row);
  switch (row.setting_kind) {
    case "plain":
      return "var(--plain)";
    case "plain again":
      return "var(--plain-again)";
    case "static":
      return ramp(at, alike.length, ["--fewest-steps", "--most-steps"]);
    case "tree":
      return ramp(at, alike.length, ["--few-rows", "--many-rows"]);
    case "policy":
      return hueAt(at);
  }
}

/** The colour at this place of `count` from the first colour to the last; names of CSS variables. */
export function ramp(at: number, count: number, [from, to]: readonly [string, string]): string {
  const part = count < 2 ? 50 : Math.round(at / (count - 1) * 100);
  return `color-mix(in oklab, var(${to}) ${part}%, var(${from}))`;
}

/** The colour and symbol scales of a chart whose marks differ by series. */
export function seriesScales(styles: SeriesStyles): {
  color: { type: "ordinal"; domain: string[]; range: string[] };
  symbol: { type: "ordinal"; domain: string[]; range: SymbolType[] };
} {
  const domain = [...styles.keys()];
  const all = [...styles.values()];
  return {
    color: { type: "ordinal", domain, range: all.map(({ colour }) => colour) },
    symbol: { type: "ordinal", domain, range: all.map(({ symbol }) => symbol) },
  };
}

/**
 * A line with its dashes for each series, and a dot with its symbol for each point.
 *
 * @param names fields of the points: x, y and the name of the series; their field `title` is shown at a dot.
 */
export function seriesMarks<Point extends object>(
  points: readonly Point[],
  { x, y, series }: Readonly<Record<"x" | "y" | "series", keyof Point & string>>,
  styles: SeriesStyles,
): Markish[] {
  const lines = [...Map.groupBy(points, (point) => String(point[series]))].map(([name, own]) =>
    lineY(own, { x, y, stroke: series, strokeDasharray: styles.get(name)?.dash ?? "" })
  );
  return [
    ...lines,
    dot(points, { x, y, r: 4, fill: series, symbol: series, title: "title" }),
  ];
}

/** Width of a character of a chart's text and of a tick, in pixels. */
const [CHARACTER, TICK] = [6.5, 14];

/** The axis with the names of the settings beside their bars, and the margin that it takes. */
export function namesAxis(bars: readonly { readonly setting: string }[]): {
  marginLeft: number;
  y: { type: "band"; label: null; domain: string[]; tickFormat: (name: string) => string };
} {
  const domain = [...new Set(bars.map(({ setting }) => setting))];
  const longest = Math.max(0, ...domain.map((name) => shortName(name).length));
  const y = { type: "band" as const, label: null, domain, tickFormat: shortName };
  return { marginLeft: Math.ceil(TICK + CHARACTER * longest), y };
}

/** A short piece of a line with its symbol, for a legend. */
export function swatch({ colour, symbol, dash }: SeriesStyle, { chart }: PageMaker): PageNode {
  const size = { width: 34, height: 14, margin: 2, marginBottom: 2 };
  return chart({
    ...size,
    x: { axis: null, domain: [0, 2] },
    y: { axis: null, domain: [-1, 1] },
    marks: [
      lineX([0, 2], { y: 0, stroke: colour, strokeDasharray: dash }),
      dot([1], { x: 1, y: 0, symbol, fill: colour, r: 4 }),
    ],
  });
}
