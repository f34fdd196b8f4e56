import type { SymbolType } from "@observablehq/plot";
import type { Look, Looks } from "../page/series.ts";
import type { LoadSummary } from "./summary.ts";

/** Hues in style.css for what chooses; more policies begin again, with other dashes. */
const HUES = 4;
const SYMBOLS: readonly SymbolType[] = ["square", "triangle", "diamond", "star", "cross", "wye"];
const DASHES = ["", "6 3", "2 2", "8 3 2 3", "10 4"] as const;

/** By label. Fixed steps go from light to dark, policies that choose have hues of their own. */
export function policyLooks(all: readonly LoadSummary[]): Looks {
  const shown = all.filter(({ again }) => !again);
  const policies = [...new Map(shown.map((one) => [one.label, one])).values()];
  return new Map(policies.map((one) => [one.label, lookOf(one, policies)]));
}

function lookOf(one: LoadSummary, policies: readonly LoadSummary[]): Look {
  const at = policies.indexOf(one);
  const [symbol = "square", dash = ""] = [SYMBOLS[at % SYMBOLS.length], DASHES[at % DASHES.length]];
  if (!one.fixed) {
    const hue = policies.filter(({ fixed }) => !fixed).indexOf(one) % HUES + 1;
    return { colour: `var(--preset-${hue})`, symbol, dash };
  }
  const drafting = policies.filter(({ fixed, meanSteps }) => fixed && meanSteps);
  const place = drafting.indexOf(one);
  if (place < 0) return { colour: "var(--plain)", symbol: "circle", dash: "1 3" };
  const part = drafting.length < 2 ? 50 : Math.round(place / (drafting.length - 1) * 100);
  const colour = `color-mix(in oklab, var(--most-steps) ${part}%, var(--fewest-steps))`;
  return { colour, symbol, dash };
}
