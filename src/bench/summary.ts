import { backendRatios, ratioLines } from "./backend_ratios.ts";
import { sharedFacts, variedFacts } from "./cases.ts";
import { ACCEPT_LENGTH, ACCEPTED, BATCH, type Column, digits, isSimulated } from "./columns.ts";
import { number, OVER_BEST, OVER_PLAIN, SETTING, shortName, text, TIERS } from "./columns.ts";
import type { BenchRow } from "./row.ts";
import { positiveInterval } from "./statistics.ts";
import { tooFewText, verdictLines } from "./verdict_text.ts";

const GAP = "  ";
/** Shared facts with a line of their own; the others follow on one. */
const OWN_LINE = ["model", "draft", "device", "workload"];

const NAME: Column = { ...SETTING, text: (row) => shortName(row.setting) };
const SPEED: Column = number("tokens/s [95 %]", ({ tokens_per_second: { mean, samples } }) => {
  const around = positiveInterval(samples);
  if (around === undefined) return digits(mean);
  return `${digits(mean)} [${digits(around.low)}, ${digits(around.high)}]`;
});
const TPOT: Column = number("TPOT p50 ms", ({ tpot_ms }) => milliseconds(tpot_ms.p50));
const TTFT: Column = number("TTFT p50 ms", ({ ttft_ms }) => milliseconds(ttft_ms.p50));

const COLUMNS = [
  ...[BATCH, NAME, SPEED, OVER_PLAIN, ACCEPT_LENGTH, TPOT],
  ...[ACCEPTED, TTFT, OVER_BEST, TIERS],
];
/** What goes first where the terminal is narrow; the others always stay. */
const DROPPED = [TIERS, OVER_BEST, TTFT, ACCEPTED, TPOT, ACCEPT_LENGTH, SPEED];

/**
 * What a terminal shows: what was measured, the columns that matter and fit, who won at each batch
 * size. `columns` is the terminal's width in characters.
 */
export function summary(rows: readonly BenchRow[], { columns }: { columns: number }): string {
  const simulated = rows.some(isSimulated)
    ? ["SIMULATED acceptance: timing only, no real text"]
    : [];
  const texts = (lines: readonly string[]) => lines.flatMap((line) => wrapped(line, columns));
  const lines = [
    ...[...simulated, ...texts(factLines(rows)), ""],
    ...[...table(rows, columns), ""],
    ...[...texts(verdictLines(rows)), "", ...backendLines(rows, texts), ...texts(notes(rows))],
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** Both WebGPUs side by side, where the rows are of two. */
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
    intervals,
    "A/A: plain decoding measured again, its difference from 1.00x is noise",
    "accept length: tokens a request gains in a round; TPOT: time per output token",
    "--wide: all columns",
  ];
}

/** Heads of two lines, the rows under them; lines are not wider than `width` where that can be. */
function table(rows: readonly BenchRow[], width: number): string[] {
  const varied = variedFacts(rows).map(([title, of]) => text(title, of));
  const filled = [...varied, ...COLUMNS].filter(({ text }) => rows.some((row) => text(row) !== ""));
  let shown = filled.map((column) => lay(column, rows));
  for (const column of DROPPED) {
    if (lineWidth(shown) <= width) break;
    shown = shown.filter((one) => one.column !== column);
  }
  return [0, 1, ...rows.keys().map((row) => row + 2)].map((line) =>
    shown.map(({ cells }) => cells[line]).join(GAP).trimEnd()
  );
}

interface Laid {
  readonly column: Column;
  /** Two of the head, then one a row, all of one width. */
  readonly cells: readonly string[];
}

function lay(column: Column, rows: readonly BenchRow[]): Laid {
  const cells = [...headOf(column), ...rows.map(column.text)];
  const width = Math.max(...cells.map((cell) => cell.length));
  const pad = (cell: string) => column.align === "left" ? cell.padEnd(width) : cell.padStart(width);
  return { column, cells: cells.map(pad) };
}

function lineWidth(laid: readonly Laid[]): number {
  const widths = laid.map(({ cells }) => (cells[0] ?? "").length + GAP.length);
  return widths.reduce((sum, width) => sum + width, -GAP.length);
}

/** `over plain` above `[95 %]`, `accept` above `length`; one word stands on the lower line. */
function headOf({ title }: Column): [string, string] {
  const [, upper = "", lower = title] = /^(.+?) (\[.*|\S+)$/.exec(title) ?? [];
  return [upper, lower];
}

function milliseconds(value: number | null): string {
  return value === null ? "" : digits(value);
}

/** Broken between words, not within brackets; what follows is indented. */
function wrapped(line: string, width: number): string[] {
  const lines = [""];
  for (const word of line.split(/(?<=\S) (?=\S)(?![^[]*\])/)) {
    const last = lines.at(-1) ?? "";
    if (last === "") lines[lines.length - 1] = word;
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines;
}
