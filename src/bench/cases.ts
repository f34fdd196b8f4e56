import type { BenchRow } from "./row.ts";

/** What a row was measured on or with, besides batch size and setting: name and text. */
export type Fact = readonly [title: string, of: (row: BenchRow) => string];

/** A new axis of cases is a line here: columns, page, noise and verdicts follow. */
const FACTS: readonly Fact[] = [
  ["model", ({ model }) => model],
  ["draft", ({ draft }) => draft ?? "none"],
  ["device", ({ device }) => device],
  ["workload", ({ workload }) => workload],
  ["prompt", ({ prompt_tokens: tokens }) => tokens === null ? "text" : `${tokens} tokens`],
  ["output", ({ output_tokens }) => `${output_tokens} tokens`],
  ["temperature", ({ temperature }) => String(temperature)],
  ["depth", ({ depth }) => String(depth)],
  ["rounds per sync", ({ rounds_per_sync }) => String(rounds_per_sync)],
];

/** What all rows have in common. */
export function sharedFacts(rows: readonly BenchRow[]): (readonly [string, string])[] {
  return FACTS.flatMap(([title, of]) => {
    const values = new Set(rows.map(of));
    return values.size === 1 ? [[title, ...values] as [string, string]] : [];
  });
}

export function variedFacts(rows: readonly BenchRow[]): readonly Fact[] {
  return FACTS.filter(([, of]) => new Set(rows.map(of)).size > 1);
}

/** Rows and what sets them apart from the others: `depth 512`. */
export interface Group {
  /** Empty where nothing does. */
  readonly title: string;
  readonly rows: readonly BenchRow[];
}

/** Rows that differ in batch size and setting only: what one set of charts can show. */
export function groups(rows: readonly BenchRow[]): Group[] {
  const varied = variedFacts(rows);
  return grouped(rows, (row) => factsText(row, varied));
}

/** Rows of one case, which differ in their setting only: `batch 1, depth 512`. */
export function cases(rows: readonly BenchRow[]): Group[] {
  const varied = [["batch", ({ batch }: BenchRow) => String(batch)] as const, ...variedFacts(rows)];
  return grouped(rows, (row) => factsText(row, varied));
}

function grouped(rows: readonly BenchRow[], titleOf: (row: BenchRow) => string): Group[] {
  return [...Map.groupBy(rows, titleOf)].map(([title, rows]) => ({ title, rows }));
}

function factsText(row: BenchRow, facts: readonly Fact[]): string {
  return facts.map(([title, of]) => `${title} ${of(row)}`).join(", ");
}
