import type { Looks } from "../page/series.ts";
import type { GrowthRow } from "./row.ts";

/** Hues in style.css; more models begin again, with other dashes. */
const HUES = 4;
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross"] as const;
const DASHES = ["", "6 3", "2 2", "8 3 2 3", "10 4"] as const;

/** By model. */
export function modelLooks(rows: readonly Pick<GrowthRow, "model">[]): Looks {
  const models = [...new Set(rows.map(({ model }) => model))];
  return new Map(models.map((model, at) => [model, {
    colour: `var(--preset-${at % HUES + 1})`,
    symbol: SYMBOLS[at % SYMBOLS.length] ?? "circle",
    dash: DASHES[at % DASHES.length] ?? "",
  }]));
}
