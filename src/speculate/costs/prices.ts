import { at, paddedBatch } from "./lookup.ts";
import { ROW_BUCKETS } from "./row_buckets.ts";
import type { CostTable } from "./table.ts";

/** A cost table as a policy that compares many rounds reads it. */
export interface Prices {
  readonly costs: CostTable;
  padded(batch: number): number;
  /** Milliseconds of a round's draft levels, (K - 1) level. */
  drafting(batch: number, steps: number): number;
  /** Milliseconds of verify and extend at short contexts of a round that verifies all drafts. */
  whole(batch: number, steps: number): number;
  /** The same of packed rounds by rows, before they are padded, at least up to `rows` of them. */
  packed(rows: number): readonly number[];
}

/**
 * The parts of `roundMs`, each looked up once: the caller keeps it for as long as it keeps the
 * table.
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
    costs,
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
        packed.push(forwards(ROW_BUCKETS.find((bucket) => bucket >= row) ?? row));
      }
      return packed;
    },
  };
}
