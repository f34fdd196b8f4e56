import { COST_FORMAT, type CostTable } from "../../../src/speculate/costs/table.ts";

/** A table whose numbers are easy to reckon with. */
export const SIMPLE: CostTable = {
  format: COST_FORMAT,
  adapter: "an adapter",
  model: "target",
  draft: "head",
  buckets: [1, 2, 4, 8],
  level: [{ at: 1, ms: 1 }, { at: 8, ms: 1.7 }],
  verify: [{ at: 1, ms: 10 }, { at: 8, ms: 12 }, { at: 64, ms: 68 }],
  perCell: 0.001,
  extend: [{ at: 1, ms: 2 }, { at: 64, ms: 8.3 }],
  catchUp: [{ at: 1, ms: 3 }, { at: 101, ms: 13 }],
  prefill: [{ at: 1, ms: 5 }, { at: 100, ms: 104 }],
  host: 0.4,
  fitError: 0.02,
};
