import { cellColumns, type Column, fittedTable, markdownText, numbers } from "../table.ts";
import { splitTable, words, wrapped } from "../table.ts";
import { places } from "../formats.ts";
import type { SimulatedRow, SimulatedTable } from "./summary.ts";

/** What all tables have in common, written above them. */
export interface SimulatedFacts {
  readonly costs: string;
  readonly repeats: number;
  readonly seed: number;
}

type SimulatedColumn = Column<SimulatedRow>;

const POLICY: SimulatedColumn = words("policy", ({ policy }) => policy);
const SPEED: SimulatedColumn = numbers("tok/s", (row) => row.throughput, shortNumber);
const OF_BEST: SimulatedColumn = numbers(
  "of best static",
  ({ relative: { ratio, low, high } }) =>
    ratio.toFixed(3) +
    (low === null || high === null ? "" : ` (${low.toFixed(3)}-${high.toFixed(3)})`),
);
const REGRET: SimulatedColumn = numbers("regret: oracle", ({ regret }) => regret.dynamic, share);
const BY_BATCH: SimulatedColumn = numbers("by batch", ({ regret }) => regret.per_batch, share);
const STATIC: SimulatedColumn = numbers("static", ({ regret }) => regret.static, share);
const DEPTH: SimulatedColumn = numbers("depth", (row) => row.mean_depth, places(2));
const ACCEPT: SimulatedColumn = numbers(
  "accept length",
  (row) => row.mean_accept_length,
  places(2),
);
const SWITCHES: SimulatedColumn = numbers("switches", ({ switches }) => switches, places(0));
const PREEMPTED: SimulatedColumn = numbers("preemptions", (row) => row.preemptions, places(0));
const TTFT: SimulatedColumn = numbers("TTFT p50 ms", (row) => row.ttft_ms.p50, shortNumber);
const TPOT: SimulatedColumn = numbers("TPOT p50 ms", (row) => row.tpot_ms.p50, shortNumber);
const E2E: SimulatedColumn = numbers("E2E p50 ms", (row) => row.e2e_ms.p50, shortNumber);
const E2E_P99: SimulatedColumn = numbers("E2E p99 ms", (row) => row.e2e_ms.p99, shortNumber);

const COLUMNS = [
  ...[POLICY, SPEED, OF_BEST, REGRET, BY_BATCH, STATIC, DEPTH, ACCEPT, SWITCHES, PREEMPTED],
  ...[TTFT, TPOT, E2E, E2E_P99],
];
/** The columns that a narrow terminal leaves out, in this order; the others are always shown. */
const DROPPED = [STATIC, BY_BATCH, SWITCHES, PREEMPTED, E2E_P99, DEPTH, REGRET, ACCEPT];

/** A column is left out if all its cells are among these. */
const NOTHING: ReadonlySet<string> = new Set(["", "0"]);

/** The tables as Markdown: all worlds side by side if there are several, then one table for each. */
export function simulatedText(
  tables: readonly SimulatedTable[],
  { costs, repeats, seed }: SimulatedFacts,
): string {
  const facts = `costs: ${costs}; repeats ${repeats}, seed ${seed}`;
  const side = acrossWorlds(tables).map(({ columns, rows }) => markdownText(columns, rows));
  return [facts, ...side, ...tables.map(oneTable)].join("\n\n") + "\n";
}

/** The same for a terminal of `columns` characters, with the columns that fit. */
export function simulatedTerminal(
  tables: readonly SimulatedTable[],
  { costs, repeats, seed }: SimulatedFacts,
  { columns: width }: { readonly columns: number },
): string {
  const side = acrossWorlds(tables).flatMap(({ columns, rows }) =>
    splitTable(columns, rows, { width })
  );
  const each = tables.map((table) => {
    const { columns, rows } = shownOf(table);
    return [
      ...wrapped(`${table.world}: ${table.about}`, width),
      "",
      ...fittedTable(columns, rows, { width, dropped: DROPPED }),
    ];
  });
  return [
    wrapped(`costs: ${costs}; repeats ${repeats}, seed ${seed}`, width),
    ...side,
    ...each,
    ["--format md: all columns"],
  ].map((lines) => lines.map((line) => `${line}\n`).join("")).join("\n");
}

/** A table of ratios: the first column has the policies, each other one a world. */
interface Across {
  readonly columns: readonly Column<readonly string[]>[];
  readonly rows: readonly (readonly string[])[];
}

/** The worlds side by side, over the best static depth and over plain decoding; empty for a single world. */
function acrossWorlds(tables: readonly SimulatedTable[]): Across[] {
  return tables.length > 1 ? [sideBySide(tables), ...overPlain(tables)] : [];
}

/** Throughput over that of the best static depth. */
function sideBySide(tables: readonly SimulatedTable[]): Across {
  const best = ["best static", ...tables.map(({ best_static }) => best_static), ""];
  const ratio = ({ relative }: SimulatedRow) => relative.ratio;
  return ratiosOf(tables, { title: "of best static", ratio, last: [best] });
}

/** Throughput over that of plain decoding; empty if a world has no result of plain decoding. */
function overPlain(tables: readonly SimulatedTable[]): Across[] {
  const plain = new Map(
    tables.map((table) => [table, table.rows.find(({ policy }) => policy === "static:0")]),
  );
  if ([...plain.values()].includes(undefined)) return [];
  const ratio = (row: SimulatedRow, table: SimulatedTable) =>
    row.throughput / (plain.get(table)?.throughput ?? NaN);
  return [ratiosOf(tables, { title: "of plain decoding", ratio, last: [] })];
}

/** A table with a column for each world and one for the geometric mean of all worlds. */
function ratiosOf(
  tables: readonly SimulatedTable[],
  { title, ratio, last }: {
    readonly title: string;
    readonly ratio: (row: SimulatedRow, table: SimulatedTable) => number;
    readonly last: readonly string[][];
  },
): Across {
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
  return { columns: cellColumns([title, ...names, "mean"], [title]), rows: [...rows, ...last] };
}

function oneTable(table: SimulatedTable): string {
  const { columns, rows } = shownOf(table);
  return `${table.world}: ${table.about}\n\n${markdownText(columns, rows)}`;
}

/** The rows of a world's table and the columns that are not empty. */
function shownOf(
  table: SimulatedTable,
): { readonly columns: readonly SimulatedColumn[]; readonly rows: readonly SimulatedRow[] } {
  const rows = shownRows(table);
  const columns = COLUMNS.filter((column) =>
    column === POLICY || column === SPEED || rows.some((row) => !NOTHING.has(column.text(row)))
  );
  return { columns, rows };
}

/** The rows without static depths other than the best; JSON has them all. */
function shownRows(table: SimulatedTable | undefined): readonly SimulatedRow[] {
  if (table === undefined) return [];
  return table.rows.filter(({ kind, policy }) => kind !== "static" || policy === table.best_static);
}

function shortNumber(value: number): string {
  return value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString();
}

function share(part: number): string {
  // -0.0 is 0.
  return `${(Math.round(1000 * part) / 10 + 0).toFixed(1)} %`;
}
