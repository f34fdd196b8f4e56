import { percentText } from "../text/numbers.ts";
import { cases, sharedFacts, variedFacts } from "./cases.ts";
import type { BenchRow } from "./row.ts";
import type { Percentiles, Ratio } from "./statistics.ts";
import type { TextColumn } from "./terminal_table.ts";

/** One column of the tables for people. */
export type Column = TextColumn<BenchRow>;

export const text = (title: string, of: (row: BenchRow) => string): Column => ({
  title,
  align: "left",
  text: of,
});
export const number = (title: string, of: (row: BenchRow) => string): Column => ({
  title,
  align: "right",
  text: of,
});

export const BATCH: Column = number("batch", ({ batch }) => String(batch));
export const SETTING: Column = text("setting", ({ setting }) => setting);
export const OVER_PLAIN: Column = number("over plain [95 %]", ({ speedup }) => ratioText(speedup));
export const OVER_BEST: Column = number(
  "over best fixed [95 %]",
  ({ gap_to_best_static }) => gap_to_best_static === null ? "" : changeText(gap_to_best_static),
);
export const ACCEPT_LENGTH: Column = number(
  "accept length",
  ({ mean_accept_length }) => fixed(mean_accept_length, 2),
);
export const ACCEPTED: Column = number(
  "accepted",
  ({ draft_acceptance_rate }) => share(draft_acceptance_rate),
);
export const PROMPT_SPEED: Column = number(
  "prompt tokens/s",
  ({ prompt_tokens_per_second: prompt }) => prompt === undefined ? "" : digits(prompt.mean),
);
export const TIERS: Column = text("time by tier", ({ tier_share }) => tierText(tier_share));

const MEASURED: readonly Column[] = [
  BATCH,
  SETTING,
  number(
    "tokens/s",
    ({ tokens_per_second: { mean, sd } }) =>
      sd === null ? digits(mean) : `${digits(mean)} ± ${digits(sd)}`,
  ),
  PROMPT_SPEED,
  OVER_PLAIN,
  OVER_BEST,
  ACCEPT_LENGTH,
  ACCEPTED,
  number(
    "by position %",
    ({ acceptance_per_position }) =>
      acceptance_per_position.map((part) => (part * 100).toFixed(0)).join(" "),
  ),
  number("draft ms", ({ round_ms }) => digits(round_ms.draft)),
  number("verify ms", ({ round_ms }) => digits(round_ms.verify)),
  number("extend ms", ({ round_ms }) => digits(round_ms.extend)),
  number("host ms", ({ round_ms }) => digits(round_ms.host)),
  number("rounds a sync", ({ mean_rounds_per_sync }) => fixed(mean_rounds_per_sync, 1)),
  number("c(M)/c(1)", ({ verify_cost_ratio }) => fixed(verify_cost_ratio, 2)),
  number("TTFT p50/p90/p99 ms", ({ ttft_ms }) => percentilesText(ttft_ms)),
  number("TPOT p50/p90/p99 ms", ({ tpot_ms }) => percentilesText(tpot_ms)),
  number("ITL p50/p90/p99 ms", ({ itl_ms }) => percentilesText(itl_ms)),
  number("switches", ({ switches }) => fixed(switches, Number.isInteger(switches) ? 0 : 1)),
  TIERS,
  number("blocks", ({ blocks }) => String(blocks)),
];

/**
 * The columns worth showing for these rows: what all rows share is said once, in `shared`, and a
 * column SIMULATED is there where any row is.
 */
export function columnsFor(
  rows: readonly BenchRow[],
): {
  readonly columns: readonly Column[];
  readonly shared: readonly (readonly [string, string])[];
} {
  const varied = variedFacts(rows).map(([title, of]) => text(title, of));
  const simulated = rows.some(isSimulated)
    ? [text("acceptance", ({ acceptance }) => acceptance)]
    : [];
  return { columns: [...simulated, ...varied, ...MEASURED], shared: sharedFacts(rows) };
}

export function isSimulated({ acceptance }: BenchRow): boolean {
  return acceptance === "SIMULATED";
}

/** `1.82x [1.75, 1.90]`; plain against itself is `1.00x`. The unit may tell more: `x plain`. */
export function ratioText({ ratio, low, high }: Ratio, unit: string = "x"): string {
  const known = low !== null && high !== null && low !== high;
  const around = !known ? "" : ` [${low.toFixed(2)}, ${high.toFixed(2)}]`;
  return `${ratio.toFixed(2)}${unit}${around}`;
}

/**
 * What A/A rows say about noise, each with what differs between the cases: `batch 1, depth 512
 * 1.00x [0.98, 1.02]`; undefined without such rows.
 */
export function noiseText(rows: readonly BenchRow[]): string | undefined {
  const texts = cases(rows).flatMap(({ title, rows }) =>
    rows.filter(({ setting_kind }) => setting_kind === "plain again")
      .map(({ speedup }) => `${title} ${ratioText(speedup)}`)
  );
  return texts.length === 0
    ? undefined
    : `Noise, plain decoding against itself: ${texts.join("; ")}`;
}

const LONGEST_NAME = 24;

/** The end of a name tells files and options apart: `preset …tuned.json`, `policy ema:…interval=2`. */
export function shortName(name: string): string {
  if (name.length <= LONGEST_NAME) return name;
  const [kind = ""] = /^(preset |policy [^:]*:)/.exec(name) ?? [];
  const start = `${kind}…`.slice(-LONGEST_NAME);
  return start + name.slice(name.length - LONGEST_NAME + start.length);
}

/** Three significant digits, no exponent: `0.123`, `12.3`, `1234`. */
export function digits(value: number): string {
  const magnitude = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.min(3, Math.max(0, 2 - magnitude)));
}

function fixed(value: number | null, places: number): string {
  return value === null ? "" : value.toFixed(places);
}

function share(value: number | null): string {
  return value === null ? "" : percentText(value);
}

/** `-3.1% [-4.0%, -2.2%]`. */
function changeText({ ratio, low, high }: Ratio): string {
  const around = low === null || high === null || low === high
    ? ""
    : ` [${percentChange(low)}, ${percentChange(high)}]`;
  return `${percentChange(ratio)}${around}`;
}

function percentChange(ratio: number): string {
  const change = (ratio - 1) * 100;
  const shown = Math.abs(change) < 0.05 ? 0 : change;
  return `${shown > 0 ? "+" : ""}${shown.toFixed(1)}%`;
}

function percentilesText({ p50, p90, p99 }: Percentiles): string {
  return [p50, p90, p99].map((value) => value === null ? "-" : digits(value)).join("/");
}

function tierText(shares: BenchRow["tier_share"]): string {
  const tiers = Object.entries(shares);
  return tiers.length < 2 ? "" : tiers.map(([tier, part]) => `${tier}: ${share(part)}`).join(", ");
}
