import type { BenchRow } from "../row.ts";

/** The colour of each setting, as a CSS value that follows the page's theme. */
export type Colours = ReadonlyMap<string, string>;

/** Hues of presets in style.css; more presets begin again. */
const PRESET_HUES = 4;

/**
 * Plain is grey, fixed steps go from light to dark with the number of steps, presets have hues of
 * their own.
 */
export function coloursOf(rows: readonly BenchRow[]): Colours {
  const settings = [...new Map(rows.map((row) => [row.setting, row])).values()];
  const fixed = settings.filter(({ setting_kind }) => setting_kind === "static");
  const presets = settings.filter(({ setting_kind }) => setting_kind === "preset");
  return new Map(settings.map((row) => {
    switch (row.setting_kind) {
      case "plain":
        return [row.setting, "var(--plain)"];
      case "plain again":
        return [row.setting, "var(--plain-again)"];
      case "static":
        return [row.setting, ramp(fixed.indexOf(row), fixed.length)];
      case "preset":
        return [row.setting, `var(--preset-${presets.indexOf(row) % PRESET_HUES + 1})`];
    }
  }));
}

function ramp(at: number, count: number): string {
  const part = count < 2 ? 50 : Math.round(at / (count - 1) * 100);
  return `color-mix(in oklab, var(--most-steps) ${part}%, var(--fewest-steps))`;
}

/** The scale of a chart whose marks are coloured by setting. */
export function colourScale(
  colours: Colours,
): { type: "ordinal"; domain: string[]; range: string[] } {
  return { type: "ordinal", domain: [...colours.keys()], range: [...colours.values()] };
}
