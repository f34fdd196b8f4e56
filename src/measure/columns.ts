import { percentText } from "../text/numbers.ts";
import { cases, sharedFacts, variedFacts } from "./cases.ts";
import { changeText, digits, percentilesText, places, ratioText } from "./formats.ts";
import { spreadText, tiersText } from "./formats.ts";
import type { BenchRow } from "./row.ts";
import { type Column, numbers, words } from "./table.ts";

type BenchColumn = Column<BenchRow>;

/** The number of requests in flight. */
export const BATCH: BenchColumn = numbers("batch", ({ batch }) => batch);
/** The name of the setting. */
export const SETTING: BenchColumn = {
  title: "setting",
  align: "left",
  text: ({ setting }) => setting,
  rowHeader: true,
};
/** Tokens/s over those of plain decoding in the same block. */
export const OVER_PLAIN: BenchColumn = numbers(
  "over plain [95 %]",
  ({ speedup }) => speedup,
  ratioText,
);
/** Tokens/s over those of the best fixed setting, as a difference in per cent. */
export const OVER_BEST: BenchColumn = numbers(
  "over best fixed [95 %]",
  (row) => row.gap_to_best_static,
  changeText,
);
/** Tokens that a request gains in a round. */
export const ACCEPT_LENGTH: BenchColumn = numbers(
  "accept length",
  (row) => row.mean_accept_length,
  places(2),
);
/** The share of drafts that were accepted. */
export const ACCEPTED: BenchColumn = numbers(
  "accepted",
  (row) => row.draft_acceptance_rate,
  percentText,
);
/** Prompt tokens per second of prefill. */
export const PREFILL_SPEED: BenchColumn = numbers(
  "prefill tokens/s",
  (row) => row.prefill_tokens_per_second?.mean,
  digits,
);
/** The share of the wall time that prefill took. */
export const PREFILL_SHARE: BenchColumn = numbers(
  "prefill time",
  (row) => row.prefill_time_share?.mean,
  percentText,
);
/** The share of the time in each tier. */
export const TIERS: BenchColumn = words("time by tier", (row) => tiersText(row.tier_share));

const MEASURED: readonly BenchColumn[] = [
  BATCH,
  SETTING,
  numbers("tokens/s", (row) => row.tokens_per_second, spreadText),
  PREFILL_SPEED,
  PREFILL_SHARE,
  OVER_PLAIN,
  OVER_BEST,
  ACCEPT_LENGTH,
  ACCEPTED,
  numbers(
    "by position %",
    (row) => row.acceptance_per_position.map((part) => (part * 100).toFixed(0)).join(" "),
  ),
  numbers("draft ms", ({ round_ms }) => round_ms.draft, digits),
  numbers("verify ms", ({ round_ms }) => round_ms.verify, digits),
  numbers("extend ms", ({ round_ms }) => round_ms.extend, digits),
  numbers("host ms", ({ round_ms }) => round_ms.host, digits),
  numbers("rounds a sync", (row) => row.mean_rounds_per_sync, places(1)),
  numbers("c(M)/c(1)", (row) => row.verify_cost_ratio, places(2)),
  numbers("TTFT p50/p90/p99 ms", ({ ttft_ms }) => ttft_ms, percentilesText),
  numbers("TPOT p50/p90/p99 ms", ({ tpot_ms }) => tpot_ms, percentilesText),
  numbers("ITL p50/p90/p99 ms", ({ itl_ms }) => itl_ms, percentilesText),
  numbers("switches", ({ switches }) => switches.toFixed(Number.isInteger(switches) ? 0 : 1)),
  TIERS,
  numbers("blocks", ({ blocks }) => blocks),
];

/**
 * The columns of these rows in the Markdown table and on the page, and the facts that all rows share, which are written
 * once above the table. There is a column with SIMULATED where any row is simulated.
 */
export function columnsFor(
  rows: readonly BenchRow[],
): {
  readonly columns: readonly BenchColumn[];
  readonly shared: readonly (readonly [string, string])[];
} {
  const simulated = rows.some(isSimulated)
    ? [words("acceptance", ({ acceptance }: BenchRow) => acceptance)]
    : [];
  return {
    columns: [...simulated, ...variedColumns(rows), ...MEASURED],
    shared: sharedFacts(rows),
  };
}

/** A column for each fact in which these rows differ. */
export function variedColumns(rows: readonly BenchRow[]): BenchColumn[] {
  return variedFacts(rows).map(([title, of]) => words(title, of));
}

/** Was the acceptance of drafts drawn at random rather than verified? */
export function isSimulated({ acceptance }: BenchRow): boolean {
  return acceptance === "SIMULATED";
}

/**
 * The prefill of plain decoding in each case: `batch 32 4266 tokens/s in 24.0% of the time`. Empty of rows without
 * prompts, and of those from before it was measured.
 */
export function prefillLines(rows: readonly BenchRow[]): readonly string[] {
  const texts = cases(rows).flatMap(({ title, rows }) => {
    const plain = rows.find(({ setting_kind }) => setting_kind === "plain");
    const speed = plain?.prefill_tokens_per_second?.mean ?? 0;
    const share = plain?.prefill_time_share?.mean ?? 0;
    return speed > 0
      ? [`${title} ${digits(speed)} tokens/s in ${percentText(share)} of the time`]
      : [];
  });
  return texts.length === 0 ? [] : [`prefill, plain decoding: ${texts.join("; ")}`];
}

/**
 * The speed of plain decoding measured again over that of plain decoding, for each case: `batch 1, depth 512 1.00x
 * [0.98, 1.02]`. Undefined where plain decoding was not measured again.
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
