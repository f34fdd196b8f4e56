import { COST_FORMAT, type CostTable, type Point } from "../../../../src/speculate/costs/table.ts";

/** What a table for tests is made of. */
export interface SimpleCosts {
  /** Milliseconds of a verify row beyond the first. */
  readonly row: number;
  /** Of a draft level and of an extend, whatever the batch. */
  readonly level?: number;
  readonly catchUp?: number;
  readonly host?: number;
}

/** Batch sizes of tests. */
export const BUCKETS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128];

/** A verify forward takes 1 ms and something for each row. */
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
