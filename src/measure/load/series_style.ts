import {
  hueAt,
  patternAt,
  PLAIN_PATTERN,
  ramp,
  type SeriesStyle,
  type SeriesStyles,
} from "../page/series.ts";
import type { LoadSummary } from "./summary.ts";

/**
 * How each policy is drawn, by its label: fixed steps go from light to dark, policies that choose have hues of their
 * own.
 */
export function policyStyles(all: readonly LoadSummary[]): SeriesStyles {
  const shown = all.filter(({ again }) => !again);
  const policies = [...new Map(shown.map((one) => [one.label, one])).values()];
  return new Map(policies.map((one) => [one.label, styleOf(one, policies)]));
}

function styleOf(one: LoadSummary, policies: readonly LoadSummary[]): SeriesStyle {
  const pattern = patternAt(policies.indexOf(one));
  if (!one.fixed) {
    return { colour: hueAt(policies.filter(({ fixed }) => !fixed).indexOf(one)), ...pattern };
  }
  const drafting = policies.filter(({ fixed, meanSteps }) => fixed && meanSteps);
  const at = drafting.indexOf(one);
  if (at < 0) return { colour: "var(--plain)", ...PLAIN_PATTERN };
  return { colour: ramp(at, drafting.length, ["--fewest-steps", "--most-steps"]), ...pattern };
}
