import { catchUpMs, ratioOf } from "../../costs/lookup.ts";
import { type Prices, pricesOf, samePrices } from "../../costs/prices.ts";
import { COST_FORMAT, type CostTable } from "../../costs/table.ts";
import type { BudgetPrices } from "../../estimate/budget.ts";
import {
  type FitOptions,
  fitTimes,
  NO_FIT,
  type RoundTimings,
  type TimeFit,
} from "../../estimate/round_times.ts";
import type { RoundContext } from "../../policy.ts";

/** What the rounds of one context cost. */
export interface RoundPrices {
  /** For `bestBudget`, before the factor. */
  budget(steps: number): BudgetPrices;
  /** Measured over predicted time for rounds of this depth. */
  factor(steps: number): number;
  /**
   * Share by which a depth's rate is raised to make it worth a try. If prices are learned from rounds, it is
   * large for a depth that has hardly run in batches of about this size. 0 with a cost table.
   */
  doubt(steps: number): number;
  /** Milliseconds of the draft's catch-up prefill of the tokens that it missed and `more` further ones. */
  catchUp(more: number): number;
}

/** Prices the rounds of a context from its cost table, or from measured round times if it has none. */
export type Pricing = (context: RoundContext, timings: RoundTimings) => RoundPrices;

export interface PricingOptions {
  readonly buckets: readonly number[];
  /** How much the times of rounds change a table's prices; absent: not at all. */
  readonly refine?: FitOptions | undefined;
}

/** A table is believed until many rounds say otherwise. */
export const REFINED: FitOptions = { level: 40, slope: 400, own: 20 };
/** Without a table, a few measured rounds outweigh the prices of `usualCosts`. */
const LEARNED: FitOptions = { level: 0, slope: 4, own: 3 };

export function pricing({ buckets, refine }: PricingOptions): Pricing {
  const usual = priced(usualCosts(buckets));
  // The lookups are kept as long as the table's lists do not change.
  let measured: Priced | undefined;
  return (context, timings) => {
    const { costs } = context;
    if (costs === undefined) return pricesFor(context, { ...usual, timings, fit: LEARNED });
    if (measured === undefined || !samePrices(measured.costs, costs)) measured = priced(costs);
    return pricesFor(context, { prices: measured.prices, costs, timings, fit: refine });
  };
}

/** A table with its precomputed lookups. */
interface Priced {
  readonly costs: CostTable;
  readonly prices: Prices;
}

function priced(costs: CostTable): Priced {
  return { costs, prices: pricesOf(costs) };
}

function pricesFor(
  { batchSize, sequences, roundsPerSync }: RoundContext,
  { prices, costs, timings, fit }: Priced & {
    readonly timings: RoundTimings;
    readonly fit: FitOptions | undefined;
  },
): RoundPrices {
  const padded = prices.padded(batchSize);
  let cells = 0;
  let lag = 0;
  for (const sequence of sequences) {
    if (sequence.position > 0 && sequence.position < MAX_CELLS) cells += sequence.position;
    if (sequence.lag > 0 && sequence.lag < MAX_CELLS) lag += sequence.lag;
  }
  const host = costs.host / (roundsPerSync >= 1 ? roundsPerSync : 1);
  const common = cells * costs.perCell + host;
  const perRow = cells * (costs.perRowCell ?? 0) / Math.max(1, batchSize);
  let times: TimeFit | undefined;
  const fitted = (steps: number) => {
    times ??= fit === undefined
      ? NO_FIT
      : fitTimes(timings, (cell) => priceOf({ costs, prices }, cell, host), fit);
    return times.factor(padded, steps);
  };
  return {
    factor: (steps) => fitted(steps) * ratioOf(costs, padded, steps),
    doubt: (steps) =>
      fit !== LEARNED ? 0 : DOUBT * Math.exp(-roundsNear(timings, padded, steps) / TRIED),
    budget(depth) {
      const fixed = common + prices.drafting(batchSize, depth);
      const verify = prices.packed(padded * (depth + 1));
      const whole = fixed + prices.whole(batchSize, depth) + perRow * batchSize * (depth + 1);
      const least = depth > 0 ? Math.ceil(batchSize / MIN_SHARE) : 0;
      return { batch: batchSize, depth, least, fixed, verify, perRow, whole };
    },
    catchUp: (more) => catchUpMs(costs, lag + more) * (fit === LEARNED ? fitted(0) : 1),
  };
}

/**
 * A round that drafts verifies a draft for at least one request in this many: without any, nothing would be learned.
 */
const MIN_SHARE = 8;
/** The doubt about a depth that never ran, and the number of rounds after which it is about a third (1/e) of that. */
const DOUBT = 0.3;
const TRIED = 3;

/** Rounds of a depth in batches of half to twice the size. */
function roundsNear(timings: RoundTimings, batch: number, steps: number): number {
  return timings.reduce(
    (sum, each) =>
      each.steps === steps && each.bucket <= 2 * batch && each.bucket * 2 >= batch
        ? sum + each.rounds
        : sum,
    0,
  );
}

/** No sequence stores more tokens. */
const MAX_CELLS = 2 ** 24;

/** Milliseconds that the table predicts for timed rounds of one bucket and depth. */
function priceOf(
  { costs, prices }: Priced,
  { bucket, steps, rows, cells }: Omit<RoundTimings[number], "rounds" | "ms">,
  host: number,
): number {
  const all = bucket * (steps + 1);
  const whole = prices.whole(bucket, steps);
  const forwards = rows < all ? Math.min(whole, prices.packed(rows)[rows] ?? whole) : whole;
  const attention = cells * (costs.perCell + rows / bucket * (costs.perRowCell ?? 0));
  return (prices.drafting(bucket, steps) + forwards + attention + host) *
    ratioOf(costs, bucket, steps);
}

/**
 * Typical relative costs, for use without a table: a forward's cost is constant for few rows and proportional
 * to many rows, and the draft costs a tenth of the target. The unit is arbitrary; round times correct it.
 */
function usualCosts(buckets: readonly number[]): CostTable {
  const rows = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
  const forward = (part: number) => rows.map((at) => ({ at, ms: part * Math.hypot(1, at / 64) }));
  return {
    format: COST_FORMAT,
    adapter: "none",
    model: "none",
    draft: "none",
    buckets,
    level: forward(0.1),
    verify: forward(1),
    extend: forward(0.1),
    catchUp: forward(0.2),
    prefill: forward(1),
    perCell: 0,
    host: 0.05,
    fitError: 0,
  };
}
