import { markdownTable } from "markdown-table";
import type { SimulatedRow, SimulatedTable } from "./summary.ts";

/** What all tables have in common, for above them. */
export interface SimulatedFacts {
  readonly costs: string;
  readonly repeats: number;
  readonly seed: number;
}

type Column = readonly [title: string, text: (row: SimulatedRow) => string];

const COLUMNS: readonly Column[] = [
  ["policy", ({ policy }) => policy],
  ["tok/s", ({ throughput }) => number(throughput)],
  [
    "of best static",
    ({ relative: { ratio, low, high } }) =>
      ratio.toFixed(3) +
      (low === null || high === null ? "" : ` (${low.toFixed(3)}-${high.toFixed(3)})`),
  ],
  ["regret: oracle", ({ regret }) => share(regret.dynamic)],
  ["by batch", ({ regret }) => share(regret.per_batch)],
  ["static", ({ regret }) => share(regret.static)],
  ["depth", ({ mean_depth }) => mean_depth.toFixed(2)],
  ["accept length", ({ mean_accept_length }) => mean_accept_length.toFixed(2)],
  ["switches", ({ switches }) => switches.toFixed(0)],
  ["preemptions", ({ preemptions }) => preemptions.toFixed(0)],
  ["TTFT p50 ms", ({ ttft_ms }) => number(ttft_ms.p50)],
  ["TPOT p50 ms", ({ tpot_ms }) => number(tpot_ms.p50)],
  ["E2E p50 ms", ({ e2e_ms }) => number(e2e_ms.p50)],
  ["E2E p99 ms", ({ e2e_ms }) => number(e2e_ms.p99)],
];

/** A column of these says nothing. */
const NOTHING: ReadonlySet<string> = new Set(["", "0"]);

/** The worlds side by side where there are several, then a table for each. */
export function simulatedText(
  tables: readonly SimulatedTable[],
  { costs, repeats, seed }: SimulatedFacts,
): string {
  const facts = `costs: ${costs}; repeats ${repeats}, seed ${seed}`;
  const side = tables.length > 1 ? [sideBySide(tables), ...overPlain(tables)] : [];
  return [facts, ...side, ...tables.map(oneTable)].join("\n\n") + "\n";
}

/** Throughput over that of the best static depth. */
function sideBySide(tables: readonly SimulatedTable[]): string {
  const best = ["best static", ...tables.map(({ best_static }) => best_static), ""];
  const ratio = ({ relative }: SimulatedRow) => relative.ratio;
  return acrossWorlds(tables, { title: "of best static", ratio, last: [best] });
}

/** Throughput over that of plain decoding, where there are prices of that. */
function overPlain(tables: readonly SimulatedTable[]): string[] {
  const plain = new Map(
    tables.map((table) => [table, table.rows.find(({ policy }) => policy === "static:0")]),
  );
  if ([...plain.values()].includes(undefined)) return [];
  const ratio = (row: SimulatedRow, table: SimulatedTable) =>
    row.throughput / (plain.get(table)?.throughput ?? NaN);
  return [acrossWorlds(tables, { title: "of plain decoding", ratio, last: [] })];
}

/** A column a world, and the geometric mean of all. */
function acrossWorlds(
  tables: readonly SimulatedTable[],
  { title, ratio, last }: {
    readonly title: string;
    readonly ratio: (row: SimulatedRow, table: SimulatedTable) => number;
    readonly last: readonly string[][];
  },
): string {
  const policies = (tables[0]?.rows ?? []).filter(({ kind }) => kind !== "static");
  const rows = policies.map(({ policy }) => {
    const ratios = tables.map((table) => {
      const row = table.rows.find((row) => row.policy === policy);
      return row ? ratio(row, table) : NaN;
    });
    const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
    return [policy, ...[...ratios, mean].map((ratio) => ratio.toFixed(3))];
  });
  const names = tables.map(({ world }) => world);
  const titles = [title, ...names, "mean"];
  const align = titles.map((_, at) => at > 0 ? "r" : "l");
  return markdownTable([titles, ...rows, ...last], { align });
}

function oneTable(table: SimulatedTable): string {
  const { world, about } = table;
  const shown = shownRows(table);
  const columns = COLUMNS.filter(([, text], at) =>
    at < 2 || shown.some((row) => !NOTHING.has(text(row)))
  );
  const rows = shown.map((row) => columns.map(([, text]) => text(row)));
  const align = columns.map((_, at) => at > 0 ? "r" : "l");
  return `${world}: ${about}\n\n${
    markdownTable([columns.map(([title]) => title), ...rows], { align })
  }`;
}

/** Of the static depths the best alone; JSON has all. */
function shownRows(table: SimulatedTable | undefined): readonly SimulatedRow[] {
  if (table === undefined) return [];
  return table.rows.filter(({ kind, policy }) => kind !== "static" || policy === table.best_static);
}

function number(value: number | null): string {
  if (value === null) return "";
  return value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString();
}

function share(part: number): string {
  // -0.0 is 0.
  return `${(Math.round(1000 * part) / 10 + 0).toFixed(1)} %`;
}
