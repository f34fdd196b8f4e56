/** Numbers and names as the tables and charts write them. */
import { percentText } from "../text/numbers.ts";
import type { Percentiles, Ratio } from "./statistics.ts";

/** Three significant digits without an exponent: `0.123`, `12.3`, `1234`. */
export function digits(value: number): string {
  // Of the rounded value: 9.999 is 10.0, not 10.00.
  const rounded = Math.abs(Number(value.toPrecision(3)));
  const magnitude = rounded === 0 ? 0 : Math.floor(Math.log10(rounded));
  return value.toFixed(Math.min(3, Math.max(0, 2 - magnitude)));
}

/** Formats with this number of decimal places. */
export function places(count: number): (value: number) => string {
  return (value) => value.toFixed(count);
}

/** Three significant digits and an x: `1.73x`. */
export function timesText(value: number): string {
  return `${digits(value)}x`;
}

/** `100 ± 3.20`, a mean and its standard deviation; the mean alone where there is no deviation. */
export function spreadText({ mean, sd }: { mean: number; sd: number | null }): string {
  return sd === null ? digits(mean) : `${digits(mean)} ± ${digits(sd)}`;
}

/** `1.82x [1.75, 1.90]`; without an interval, or with one of no width, `1.00x`. `unit` follows the ratio: `x plain`. */
export function ratioText(ratio: Ratio, unit: string = "x"): string {
  return withInterval(ratio, { one: (value) => `${value.toFixed(2)}${unit}`, end: places(2) });
}

/** `-3.1% [-4.0%, -2.2%]`: a ratio as its difference from 1. */
export function changeText(ratio: Ratio): string {
  return withInterval(ratio, { one: percentChange, end: percentChange });
}

function withInterval(
  { ratio, low, high }: Ratio,
  { one, end }: Readonly<Record<"one" | "end", (value: number) => string>>,
): string {
  const known = low !== null && high !== null && low !== high;
  return known ? `${one(ratio)} [${end(low)}, ${end(high)}]` : one(ratio);
}

function percentChange(ratio: number): string {
  const change = (ratio - 1) * 100;
  const shown = Math.abs(change) < 0.05 ? 0 : change;
  return `${shown > 0 ? "+" : ""}${shown.toFixed(1)}%`;
}

/** `12.3/15.0/20.1`, with `-` for a percentile that is not known. */
export function percentilesText({ p50, p90, p99 }: Percentiles): string {
  return slashed([p50, p90, p99]);
}

/** Values separated by slashes, with `-` for null. */
export function slashed(values: readonly (number | null)[]): string {
  return values.map((value) => value === null ? "-" : digits(value)).join("/");
}

/** `0: 25.0%, 3: 75.0%`, the share of the time in each tier; empty where there is a single tier. */
export function tiersText(shares: Readonly<Record<string, number>>): string {
  const tiers = Object.entries(shares);
  if (tiers.length < 2) return "";
  return tiers.map(([tier, part]) => `${tier}: ${percentText(part)}`).join(", ");
}

const LONGEST_NAME = 24;

/** At most 24 characters of a name: its kind and its end, where files and options differ: `policy ema:…tuned.json`. */
export function shortName(name: string): string {
  if (name.length <= LONGEST_NAME) return name;
  const [kind = ""] = /^policy [^:]*:/.exec(name) ?? [];
  const start = `${kind}…`.slice(-LONGEST_NAME);
  return start + name.slice(name.length - LONGEST_NAME + start.length);
}
