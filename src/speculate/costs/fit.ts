import { at } from "./lookup.ts";
import { COST_FORMAT, type CostTable, type Point } from "./table.ts";

/** Parts for which a table has a single number. It is a difference of times, so readings may be negative. */
type Lone = "host" | "packing";

/** How long one run of something took. */
export interface Reading {
  /** A list of the table, or its number `host` or `packing`. */
  readonly part: "level" | "verify" | "extend" | "catchUp" | "prefill" | Lone;
  /** Index in that list; 0 for a number. */
  readonly at: number;
  /** Sequences that it ran for. */
  readonly batch: number;
  /** Tokens that they had stored together. */
  readonly cells: number;
  readonly ms: number;
}

/** The least time of a verify forward: simulated time would stand still at 0, which `parseCosts` refuses. */
const MIN_MS = 1e-3;

/** Fields of a table other than its costs. */
export type TableNames = Pick<CostTable, "adapter" | "model" | "draft" | "buckets">;

/**
 * Fits a table to repeated readings: the median of each (part, at, batch, cells), made monotone.
 * `perCell` and `perRowCell` are fitted to verify readings that differ only in their cells. Readings that are not
 * finite or below 0 are left out. Negative readings of `host` and `packing` are kept: they are clock error.
 */
export function fitCosts(readings: readonly Reading[], names: TableNames): CostTable {
  const usable = readings.filter(({ part, ms }) =>
    Number.isFinite(ms) && (ms >= 0 || isLone(part))
  );
  const groups = [...Map.groupBy(usable, groupKey).values()].map(groupOf);
  const of = (part: Reading["part"]) => groups.filter((group) => group.part === part);
  const attention = fitAttention(of("verify"));
  const verify = shortest(of("verify")).map((group) => ({
    ...group,
    ms: group.ms - attentionMs(attention, group),
  }));
  const lists = {
    level: isotonic(of("level")),
    verify: isotonic(verify).map(({ at, ms }) => ({ at, ms: Math.max(MIN_MS, ms) })),
    extend: isotonic(of("extend")),
    catchUp: isotonic(of("catchUp")),
    prefill: isotonic(of("prefill")),
  };
  const number = (part: Lone) => Math.max(0, median(of(part).map(({ ms }) => ms)) ?? 0);
  const [host, packing] = [number("host"), number("packing")];
  const errors = groups.map((group) => {
    const { part, ms } = group;
    if (isLone(part) || ms <= 0) return 0;
    const more = part === "verify" ? attentionMs(attention, group) : 0;
    return Math.abs(at(lists[part], group.at) + more - ms) / ms;
  });
  const fitError = Math.max(0, ...errors);
  const numbers = { ...attention, host, ...packing > 0 ? { packing } : {} };
  return { format: COST_FORMAT, ...names, ...lists, ...numbers, fitError };
}

function isLone(part: Reading["part"]): part is Lone {
  return part === "host" || part === "packing";
}

/** The readings of one thing. */
interface Group extends Reading {
  /** How many there are; `ms` is their median. */
  readonly weight: number;
}

function groupKey({ part, at, batch, cells }: Reading): string {
  return `${part} ${at} ${batch} ${cells}`;
}

function groupOf(readings: readonly Reading[]): Group {
  const [first] = readings as readonly [Reading, ...Reading[]];
  return { ...first, ms: median(readings.map(({ ms }) => ms)) ?? 0, weight: readings.length };
}

/** What attention adds for each cell, and for each row and cell. */
type Attention = Required<Pick<CostTable, "perCell" | "perRowCell">>;

/** cells (perCell + rows of a sequence perRowCell) */
function attentionMs({ perCell, perRowCell }: Attention, { at, batch, cells }: Group): number {
  return cells * (perCell + at / batch * perRowCell);
}

/**
 * Least squares over groups that differ only in their cells; each pair of rows and batch has its own constant:
 *
 *     ms = constant + perCell cells + perRowCell (cells rows / batch), both 0 or more
 */
function fitAttention(groups: readonly Group[]): Attention {
  // Sums of squares and products: of cells (c), of cells times rows (r), of milliseconds (m).
  let [cc, cr, rr, cm, rm] = [0, 0, 0, 0, 0];
  for (const same of Map.groupBy(groups, ({ at, batch }) => `${at} ${batch}`).values()) {
    const [meanCells, meanMs] = [
      mean(same.map(({ cells }) => cells)),
      mean(same.map(({ ms }) => ms)),
    ];
    for (const each of same) {
      const c = each.cells - meanCells;
      const r = c * each.at / each.batch;
      const m = each.ms - meanMs;
      cc += c * c;
      cr += c * r;
      rr += r * r;
      cm += c * m;
      rm += r * m;
    }
  }
  const alone = (product: number, square: number) => square > 0 ? Math.max(0, product / square) : 0;
  const determinant = cc * rr - cr * cr;
  // If all rounds have the same number of rows a sequence, the two numbers cannot be separated.
  if (!(determinant > 1e-9 * cc * rr)) return { perCell: alone(cm, cc), perRowCell: 0 };
  const perCell = (cm * rr - rm * cr) / determinant;
  const perRowCell = (rm * cc - cm * cr) / determinant;
  if (perRowCell < 0) return { perCell: alone(cm, cc), perRowCell: 0 };
  if (perCell < 0) return { perCell: 0, perRowCell: alone(rm, rr) };
  return { perCell, perRowCell };
}

/**
 * Keeps, of groups that differ only in their cells, the one with the fewest cells: the cost of a cell also
 * depends on the rows, so groups with long contexts say less about the cost of rows.
 */
function shortest(groups: readonly Group[]): Group[] {
  const fewest = (a: Group, b: Group) => b.cells < a.cells ? b : a;
  return [...Map.groupBy(groups, ({ at, batch }) => `${at} ${batch}`).values()]
    .map((same) => same.reduce(fewest));
}

/** A value at a count, and how much it weighs. */
export interface Weighed extends Point {
  readonly weight: number;
}

/**
 * The rising list of points that is nearest to these, by weighed squares: pool adjacent violators.
 * Values at one count become their weighed mean first.
 */
export function isotonic(values: readonly Weighed[]): Point[] {
  const byCount = [...Map.groupBy(values, (value) => value.at).values()].map(pooled);
  const blocks: { ms: number; weight: number; counts: number[] }[] = [];
  for (const { at, ms, weight } of byCount.toSorted((a, b) => a.at - b.at)) {
    let block = { ms, weight, counts: [at] };
    for (let last = blocks.at(-1); last && last.ms > block.ms; last = blocks.at(-1)) {
      blocks.pop();
      block = { ...pooled([last, block]), counts: [...last.counts, ...block.counts] };
    }
    blocks.push(block);
  }
  return blocks.flatMap(({ counts, ms }) => counts.map((at) => ({ at, ms: Math.max(0, ms) })));
}

/** The first with the weighed mean of all. */
function pooled<T extends { readonly ms: number; readonly weight: number }>(
  values: readonly T[],
): T {
  const weight = values.reduce((sum, each) => sum + each.weight, 0);
  const ms = values.reduce((sum, each) => sum + each.ms * each.weight, 0) / weight;
  return { ...values[0] as T, ms, weight };
}

/** The middle value, of an even number the mean of both; undefined of none. */
export function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? undefined : (low + high) / 2;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
