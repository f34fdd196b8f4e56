import { at, paddedBatch } from "./lookup.ts";
import { paddedRows } from "./cost_buckets.ts";
import type { CostTable } from "./table.ts";

/** A cost table's lists as a policy that compares many rounds reads them. */
export interface Prices {
  padded(batch: number): number;
  /** Milliseconds of a round's draft levels, (K - 1) level. */
  drafting(batch: number, steps: number): number;
  /** Milliseconds of verify and extend at short contexts of a round that verifies all drafts. */
  whole(batch: number, steps: number): number;
  /**
   * The same for packed rounds, indexed by rows up to at least `rows`, with `packing`. An entry is the cost of
   * the row bucket that holds so many rows, so further drafts are free until the bucket is full.
   */
  packed(rows: number): readonly number[];
}

/**
 * The parts of `roundMs` that are in the lists, each looked up once: the caller keeps it for as long as
 * the lists are the same (`samePrices`).
 */
export function pricesOf(costs: CostTable): Prices {
  const packed: number[] = [];
  const drafting = new Map<number, number>();
  const plain = new Map<number, number>();
  const whole = new Map<number, number>();
  const buckets = new Map<number, number>();
  const padded = (batch: number) => {
    const known = buckets.get(batch);
    if (known !== undefined) return known;
    const found = paddedBatch(costs, batch);
    buckets.set(batch, found);
    return found;
  };
  const forwards = (rows: number) => at(costs.verify, rows) + at(costs.extend, rows);
  const kept = (of: Map<number, number>, key: number, price: () => number) => {
    const known = of.get(key);
    if (known !== undefined) return known;
    const ms = price();
    of.set(key, ms);
    return ms;
  };
  return {
    padded,
    drafting(batch, steps) {
      if (steps <= 1) return 0;
      const levels = padded(batch);
      return kept(drafting, levels * 64 + steps, () => (steps - 1) * at(costs.level, levels));
    },
    whole(batch, steps) {
      const rows = padded(batch) * (steps + 1);
      if (steps <= 0) return kept(plain, rows, () => at(costs.verify, rows));
      return kept(whole, rows, () => forwards(rows));
    },
    packed(rows) {
      for (let row = packed.length; row <= rows; row++) {
        packed.push(forwards(paddedRows(row)) + (costs.packing ?? 0));
      }
      return packed;
    },
  };
}

/** Whether the lists of two tables are the same. Tables that running refined have their lists in common. */
export function samePrices(a: CostTable, b: CostTable): boolean {
  return a.verify === b.verify && a.level === b.level && a.extend === b.extend &&
    a.buckets === b.buckets && a.packing === b.packing;
}
