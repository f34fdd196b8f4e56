import { at, paddedBatch } from "./lookup.ts";
import type { CostTable } from "./table.ts";

/** A cost table's lists as a policy that compares many rounds reads them. */
export interface Prices {
  padded(batch: number): number;
  /**
   * Milliseconds of a round but for its verify forward and its host: (K - 1) level + extend.
   */
  drafting(batch: number, steps: number): number;
  /** Milliseconds of the verify forward at short contexts by rows, at least up to `rows` of them. */
  verify(rows: number): readonly number[];
}

/**
 * The parts of `roundMs` that are in the lists, each looked up once: the caller keeps it for as long as
 * the lists are the same (`samePrices`).
 */
export function pricesOf(costs: CostTable): Prices {
  const verify: number[] = [];
  const drafting = new Map<number, number>();
  const buckets = new Map<number, number>();
  const padded = (batch: number) => {
    const known = buckets.get(batch);
    if (known !== undefined) return known;
    const found = paddedBatch(costs, batch);
    buckets.set(batch, found);
    return found;
  };
  return {
    padded,
    drafting(batch, steps) {
      if (steps <= 0) return 0;
      const rows = padded(batch);
      const key = rows * 64 + steps;
      const known = drafting.get(key);
      if (known !== undefined) return known;
      const ms = (steps - 1) * at(costs.level, rows) + at(costs.extend, rows * (steps + 1));
      drafting.set(key, ms);
      return ms;
    },
    verify(rows) {
      for (let row = verify.length; row <= rows; row++) verify.push(at(costs.verify, row));
      return verify;
    },
  };
}

/** Whether the lists of two tables are the same. Tables that running refined have their lists in common. */
export function samePrices(a: CostTable, b: CostTable): boolean {
  return a.verify === b.verify && a.level === b.level && a.extend === b.extend &&
    a.buckets === b.buckets;
}
