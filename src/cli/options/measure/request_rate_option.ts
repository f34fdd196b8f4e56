import { parseAxis } from "../../../measure/axes.ts";

/** How often requests arrive: at constant rates, each a load of its own, or at one that changes. */
export type RequestRate =
  | { readonly kind: "constant"; readonly perSecond: readonly number[] }
  | { readonly kind: "schedule"; readonly text: string };

/** Rates of requests a second that can be asked for. */
const MIN = 0.001;
const MAX = 1_000_000;

/** What `--request-rate` accepts, as a phrase. */
export const REQUEST_RATE_TEXT: string =
  `numbers from ${MIN} to ${MAX}, as in 1,2, or a schedule SECONDS:RATE,SECONDS:RATE`;

/**
 * Rates as `--request-rate` takes them: `1,2,4`, or `0:2,60:20`, which is 2 a second and from second 60
 * on 20. Undefined for numbers that are not allowed; `parseSchedule` checks a schedule.
 */
export function requestRateOf(text: string): RequestRate | undefined {
  if (text.includes(":")) return { kind: "schedule", text };
  const perSecond = parseAxis(text);
  return perSecond?.every((rate) => rate >= MIN && rate <= MAX)
    ? { kind: "constant", perSecond }
    : undefined;
}
