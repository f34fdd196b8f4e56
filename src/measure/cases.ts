import type { BenchRow } from "./row.ts";

/** What a row was measured on or with, besides batch size and setting: name and text. */
export type Fact = readonly [title: string, of: (row: BenchRow) => string];

/** A new axis of cases is a line here: columns, page, noise and verdicts follow. */
const FACTS: readonly Fact[] = [
  ["model", ({ model }) => model],
  ["draft", ({ draft }) => draft ?? "none"],
  ["device", ({ device }) => device],
  ["webgpu", ({ webgpu = "builtin" }) => webgpu],
  ["workload", ({ workload }) => workload],
  ["prompt", ({ prompt_tokens: tokens }) => tokens === null ? "text" : `${tokens} tokens`],
  ["output", ({ output_tokens }) => `${output_tokens} tokens`],
  ["temperature", ({ temperature }) => String(temperature)],
  ["depth", ({ depth }) => String(depth)],
  ["rounds per sync", ({ rounds_per_sync }) => String(rounds_per_sync)],
];

/** What all rows have in common; of two WebGPUs the names that either has for the device. */
export function sharedFacts(rows: readonly BenchRow[]): (readonly [string, string])[] {
  const varied = variedFacts(rows);
  return FACTS.flatMap((fact) => {
    const [title, of] = fact;
    const values = [...new Set(rows.map(of))];
    // The built-in one goes without saying.
    if (varied.includes(fact) || (title === "webgpu" && values[0] === "builtin")) return [];
    return [[title, values.join(" and ")] as [string, string]];
  });
}

/** What sets rows apart. The WebGPU tells devices apart that are one with two names. */
export function variedFacts(rows: readonly BenchRow[]): readonly Fact[] {
  const varied = FACTS.filter(([, of]) => new Set(rows.map(of)).size > 1);
  const backends = new Set(rows.map(({ webgpu }) => webgpu)).size;
  const devices = new Set(rows.map(({ device }) => device)).size;
  const twins = backends > 1 && backends === devices;
  return varied.filter(([title]) => !(twins && title === "device"));
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
