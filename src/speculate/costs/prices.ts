import { at, paddedBatch } from "./lookup.ts";
import type { CostTable } from "./table.ts";

/** A cost table as a policy that compares many rounds reads it. */
export interface Prices {
  readonly costs: CostTable;
  padded(batch: number): number;
  /**
   * Milliseconds of a round but for its verify forward and its host: (K - 1) level + extend.
   */
  drafting(batch: number, steps: number): number;
  /** Milliseconds of the verify forward at short contexts by rows, at least up to `rows` of them. */
  verify(rows: number): readonly number[];
}

/**
 * The parts of `roundMs`, each looked up once: the caller keeps it for as long as it keeps the
 * table.
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
    costs,
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
