import { hueAt, patternAt, type SeriesStyles } from "../page/series.ts";
import { type GrowthRow, seriesNames } from "./row.ts";

const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross"] as const;

/** How each series is drawn, by its name. */
export function seriesLooks(rows: readonly Pick<GrowthRow, "model" | "webgpu">[]): SeriesStyles {
  const names = [...new Set(rows.map(seriesNames(rows)))];
  return new Map(
    names.map((name, at) => [name, { colour: hueAt(at), ...patternAt(at, SYMBOLS) }]),
  );
}
