import { markdownTable } from "markdown-table";
import { fittedTable, splitTable, type TextColumn, wrapped } from "../terminal_table.ts";
import type { SimulatedRow, SimulatedTable } from "./summary.ts";

/** What all tables have in common, for above them. */
export interface SimulatedFacts {
  readonly costs: string;
  readonly repeats: number;
  readonly seed: number;
}

type Column = TextColumn<SimulatedRow>;

const column = (title: string, text: Column["text"]): Column => ({ title, align: "right", text });

const POLICY: Column = { title: "policy", align: "left", text: ({ policy }) => policy };
const SPEED = column("tok/s", ({ throughput }) => number(throughput));
const OF_BEST = column(
  "of best static",
  ({ relative: { ratio, low, high } }) =>
    ratio.toFixed(3) +
    (low === null || high === null ? "" : ` (${low.toFixed(3)}-${high.toFixed(3)})`),
);
const REGRET = column("regret: oracle", ({ regret }) => share(regret.dynamic));
const BY_BATCH = column("by batch", ({ regret }) => share(regret.per_batch));
const STATIC = column("static", ({ regret }) => share(regret.static));
const DEPTH = column("depth", ({ mean_depth }) => mean_depth.toFixed(2));
const ACCEPT = column("accept length", (row) => row.mean_accept_length.toFixed(2));
const SWITCHES = column("switches", ({ switches }) => switches.toFixed(0));
const PREEMPTED = column("preemptions", ({ preemptions }) => preemptions.toFixed(0));
const TTFT = column("TTFT p50 ms", ({ ttft_ms }) => number(ttft_ms.p50));
const TPOT = column("TPOT p50 ms", ({ tpot_ms }) => number(tpot_ms.p50));
const E2E = column("E2E p50 ms", ({ e2e_ms }) => number(e2e_ms.p50));
const E2E_P99 = column("E2E p99 ms", ({ e2e_ms }) => number(e2e_ms.p99));

const COLUMNS = [
  ...[POLICY, SPEED, OF_BEST, REGRET, BY_BATCH, STATIC, DEPTH, ACCEPT, SWITCHES, PREEMPTED],
  ...[TTFT, TPOT, E2E, E2E_P99],
];
/** What goes first where a terminal is narrow; the others always stay. */
const DROPPED = [STATIC, BY_BATCH, SWITCHES, PREEMPTED, E2E_P99, DEPTH, REGRET, ACCEPT];

/** A column of these says nothing. */
const NOTHING: ReadonlySet<string> = new Set(["", "0"]);

/** The worlds side by side where there are several, then a table for each. */
export function simulatedText(
  tables: readonly SimulatedTable[],
  { costs, repeats, seed }: SimulatedFacts,
): string {
  const facts = `costs: ${costs}; repeats ${repeats}, seed ${seed}`;
  const side = acrossWorlds(tables).map(({ titles, rows }) => {
    const align = titles.map((_, at) => at > 0 ? "r" : "l");
    return markdownTable([[...titles], ...rows.map((row) => [...row])], { align });
  });
  return [facts, ...side, ...tables.map(oneTable)].join("\n\n") + "\n";
}

/** The same for a terminal: no line is longer than `columns` characters, of the columns what fits. */
export function simulatedTerminal(
  tables: readonly SimulatedTable[],
  { costs, repeats, seed }: SimulatedFacts,
  { columns: width }: { readonly columns: number },
): string {
  const side = acrossWorlds(tables).flatMap(({ titles, rows }) => {
    const [first = "", ...others] = titles;
    const worlds = others.map((title, at): TextColumn<readonly string[]> => (
      { title, align: "right", text: (row) => row[at + 1] ?? "" }
    ));
    const name = { title: first, align: "left", text: (row: readonly string[]) => row[0] ?? "" };
    return splitTable([name as TextColumn<readonly string[]>, ...worlds], rows, { width });
  });
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
    ["--output md: all columns"],
  ].map((lines) => lines.map((line) => `${line}\n`).join("")).join("\n");
}

/** A table of ratios: the first column has the policies, then a column a world. */
interface Across {
  readonly titles: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The worlds side by side, over the best static depth and over plain decoding; nothing of a single one. */
function acrossWorlds(tables: readonly SimulatedTable[]): Across[] {
  return tables.length > 1 ? [sideBySide(tables), ...overPlain(tables)] : [];
}

/** Throughput over that of the best static depth. */
function sideBySide(tables: readonly SimulatedTable[]): Across {
  const best = ["best static", ...tables.map(({ best_static }) => best_static), ""];
  const ratio = ({ relative }: SimulatedRow) => relative.ratio;
  return ratiosOf(tables, { title: "of best static", ratio, last: [best] });
}

/** Throughput over that of plain decoding, where there are prices of that. */
function overPlain(tables: readonly SimulatedTable[]): Across[] {
  const plain = new Map(
    tables.map((table) => [table, table.rows.find(({ policy }) => policy === "static:0")]),
  );
  if ([...plain.values()].includes(undefined)) return [];
  const ratio = (row: SimulatedRow, table: SimulatedTable) =>
    row.throughput / (plain.get(table)?.throughput ?? NaN);
  return [ratiosOf(tables, { title: "of plain decoding", ratio, last: [] })];
}

/** A column a world, and the geometric mean of all. */
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
  return { titles: [title, ...names, "mean"], rows: [...rows, ...last] };
}

function oneTable(table: SimulatedTable): string {
  const { world, about } = table;
  const { columns, rows } = shownOf(table);
  const lines = rows.map((row) => columns.map(({ text }) => text(row)));
  const align = columns.map((_, at) => at > 0 ? "r" : "l");
  return `${world}: ${about}\n\n${
    markdownTable([columns.map(({ title }) => title), ...lines], { align })
  }`;
}

/** The rows of a world's table and the columns that say something. */
function shownOf(
  table: SimulatedTable,
): { readonly columns: readonly Column[]; readonly rows: readonly SimulatedRow[] } {
  const rows = shownRows(table);
  const columns = COLUMNS.filter((column) =>
    column === POLICY || column === SPEED || rows.some((row) => !NOTHING.has(column.text(row)))
  );
  return { columns, rows };
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
