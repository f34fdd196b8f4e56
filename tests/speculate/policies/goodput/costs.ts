import { COST_FORMAT, type CostTable, type Point } from "../../../../src/speculate/costs/table.ts";

/** The numbers that a cost table for tests is made of. */
export interface SimpleCosts {
  /** Milliseconds of each verify row after the first. */
  readonly row: number;
  /** Milliseconds of a draft level and of an extend, for any batch size. */
  readonly level?: number;
  readonly catchUp?: number;
  readonly host?: number;
}

/** Batch sizes of tests. */
export const BUCKETS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128];

/** Costs in which a verify forward takes 1 ms plus a time for each row. */
export function costsOf({ row, level = 0.1, catchUp = 0.3, host = 0 }: SimpleCosts): CostTable {
  const same = (ms: number): Point[] => [{ at: 1, ms }, { at: 2048, ms }];
  return {
    format: COST_FORMAT,
    adapter: "none",
    model: "none",
    draft: "none",
    buckets: BUCKETS,
    level: same(level),
    verify: [{ at: 1, ms: 1 }, { at: 2049, ms: 1 + 2048 * row }],
    perCell: 0,
    extend: same(level),
    catchUp: same(catchUp),
    prefill: same(1),
    host,
    fitError: 0,
  };
}
