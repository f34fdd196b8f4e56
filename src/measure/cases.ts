import type { BenchRow } from "./row.ts";

/** A condition of a measurement besides batch size and setting: its name and its text for a row. */
export type Fact = readonly [title: string, of: (row: BenchRow) => string];

/** All facts. Columns, pages, noise and verdicts read this list, so a new axis of cases is a line here. */
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

/**
 * Names and values of the facts that are the same in all rows. With two WebGPU implementations the device has the names
 * of both.
 */
export function sharedFacts(rows: readonly BenchRow[]): (readonly [string, string])[] {
  const varied = variedFacts(rows);
  return FACTS.flatMap((fact) => {
    const [title, of] = fact;
    const values = [...new Set(rows.map(of))];
    // The built-in one is not named.
    if (varied.includes(fact) || (title === "webgpu" && values[0] === "builtin")) return [];
    return [[title, values.join(" and ")] as [string, string]];
  });
}

/**
 * The facts in which rows differ. The device is left out if it only has a different name on each WebGPU implementation.
 */
export function variedFacts(rows: readonly BenchRow[]): readonly Fact[] {
  const varied = FACTS.filter(([, of]) => new Set(rows.map(of)).size > 1);
  const backends = new Set(rows.map(({ webgpu }) => webgpu)).size;
  const devices = new Set(rows.map(({ device }) => device)).size;
  const twins = backends > 1 && backends === devices;
  return varied.filter(([title]) => !(twins && title === "device"));
}

/** Rows and the facts in which they differ from other groups: `depth 512`. */
export interface Group {
  /** Empty if there is a single group. */
  readonly title: string;
  readonly rows: readonly BenchRow[];
}

/** Groups of rows that differ only in batch size and setting; each is one section of charts. */
export function groups(rows: readonly BenchRow[]): Group[] {
  const varied = variedFacts(rows);
  return grouped(rows, (row) => factsText(row, varied));
}

/** Groups of rows that differ only in their setting: `batch 1, depth 512`. */
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
