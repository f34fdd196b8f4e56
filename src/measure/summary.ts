import { backendRatios, ratioLines } from "./backend_ratios.ts";
import { sharedFacts } from "./cases.ts";
import { ACCEPT_LENGTH, ACCEPTED, BATCH, isSimulated, OVER_BEST, OVER_PLAIN } from "./columns.ts";
import {
  PREFILL_SHARE,
  PREFILL_SPEED,
  prefillLines,
  SETTING,
  TIERS,
  variedColumns,
} from "./columns.ts";
import { digits, shortName } from "./formats.ts";
import type { BenchRow } from "./row.ts";
import { positiveInterval } from "./statistics.ts";
import { type Column, fittedTable, numbers, wrapped } from "./table.ts";
import { tooFewText, verdictLines } from "./verdict_text.ts";

/** Shared facts with a line of their own; the others are on one line. */
const OWN_LINE = ["model", "draft", "device", "workload"];

const NAME: Column<BenchRow> = { ...SETTING, text: (row) => shortName(row.setting) };
const SPEED: Column<BenchRow> = numbers(
  "tokens/s [95 %]",
  (row) => row.tokens_per_second,
  ({ mean, samples }) => {
    const around = positiveInterval(samples);
    if (around === undefined) return digits(mean);
    return `${digits(mean)} [${digits(around.low)}, ${digits(around.high)}]`;
  },
);
const TPOT: Column<BenchRow> = numbers("TPOT p50 ms", ({ tpot_ms }) => tpot_ms.p50, digits);
const TTFT: Column<BenchRow> = numbers("TTFT p50 ms", ({ ttft_ms }) => ttft_ms.p50, digits);

const COLUMNS = [
  ...[BATCH, NAME, SPEED, OVER_PLAIN, ACCEPT_LENGTH, TPOT],
  ...[ACCEPTED, TTFT, PREFILL_SPEED, PREFILL_SHARE, OVER_BEST, TIERS],
];
/** The columns that a narrow terminal leaves out, in this order; the others are always shown. */
const DROPPED = [
  ...[TIERS, OVER_BEST, PREFILL_SHARE, PREFILL_SPEED],
  ...[TTFT, ACCEPTED, TPOT, ACCEPT_LENGTH, SPEED],
];

/**
 * The rows for a terminal of `columns` characters: what was measured, a table of the columns that fit, the verdict on
 * each case, and notes.
 */
export function summary(rows: readonly BenchRow[], { columns }: { columns: number }): string {
  const simulated = rows.some(isSimulated)
    ? ["SIMULATED acceptance: timing only, no real text"]
    : [];
  const texts = (lines: readonly string[]) => lines.flatMap((line) => wrapped(line, columns));
  const lines = [
    ...[...simulated, ...texts(factLines(rows)), ""],
    ...fittedTable([...variedColumns(rows), ...COLUMNS], rows, {
      width: columns,
      dropped: DROPPED,
    }),
    "",
    ...[...texts(verdictLines(rows)), "", ...backendLines(rows, texts), ...texts(notes(rows))],
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** The comparison of two WebGPU implementations; empty if the rows are from one. */
function backendLines(
  rows: readonly BenchRow[],
  texts: (lines: readonly string[]) => readonly string[],
): readonly string[] {
  const backends = backendRatios(rows);
  return backends ? [...texts(ratioLines(backends)), ""] : [];
}

function factLines(rows: readonly BenchRow[]): string[] {
  const facts = sharedFacts(rows);
  const rest = facts.filter(([title]) => !OWN_LINE.includes(title))
    .map((fact) => fact.join(" ")).join(", ");
  const own = facts.filter(([title]) => OWN_LINE.includes(title));
  return [...own, ["case", rest] as const].map(([title, text]) => `${title.padEnd(10)}${text}`);
}

function notes(rows: readonly BenchRow[]): string[] {
  const blocks = Math.min(...rows.map((row) => row.blocks));
  const intervals = rows.some(({ speedup }) => speedup.low === null)
    ? tooFewText(blocks)
    : `[95 %]: interval over ${blocks} blocks; more narrow it, as with --repeat ${2 * blocks}`;
  return [
    ...prefillLines(rows),
    intervals,
    "A/A: plain decoding measured again, its difference from 1.00x is noise",
    "accept length: tokens a request gains in a round; TPOT: time per output token",
    "--format md: all columns",
  ];
}
