import type { Looks } from "../page/series.ts";
import { type GrowthRow, seriesNames } from "./row.ts";

/** Hues in style.css; more models begin again, with other dashes. */
const HUES = 4;
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross"] as const;
const DASHES = ["", "6 3", "2 2", "8 3 2 3", "10 4"] as const;

/** By the names that series have. */
export function seriesLooks(rows: readonly Pick<GrowthRow, "model" | "webgpu">[]): Looks {
  const names = [...new Set(rows.map(seriesNames(rows)))];
  return new Map(names.map((name, at) => [name, {
    colour: `var(--preset-${at % HUES + 1})`,
    symbol: SYMBOLS[at % SYMBOLS.length] ?? "circle",
    dash: DASHES[at % DASHES.length] ?? "",
  }]));
}
