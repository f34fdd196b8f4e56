import { UsageError } from "../../errors.ts";
import { CostError } from "../../speculate/costs/parse.ts";
import { type AcceptanceModel, meanTokens } from "../acceptance/model.ts";
import type { Pricing } from "./pricing.ts";

/** Throughput that was published for batch sizes and depths, which does not separate costs from acceptance. */
export interface RewardTable {
  readonly format: typeof REWARD_FORMAT;
  /** Where the numbers are from. */
  readonly source: string;
  /** Rising. */
  readonly batches: readonly number[];
  /** Depths, rising. */
  readonly steps: readonly number[];
  /** Tokens a second over all requests, [steps][batches]. */
  readonly rates: readonly (readonly number[])[];
}

export const REWARD_FORMAT = "eyrie-rewards-1";

/** A reward table as its JSON file has it. @throws CostError naming what is wrong. */
export function parseRewards(json: unknown): RewardTable {
  const { format, source, batches, steps, rates, ...others } = { ...json as Partial<RewardTable> };
  if (format !== REWARD_FORMAT) throw new CostError(`its format is not "${REWARD_FORMAT}"`);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new CostError(`it has an unknown field "${unknown}"`);
  if (typeof source !== "string") throw new CostError("source is not text");
  if (!isRising(batches, 1)) {
    throw new CostError("batches have to be integers from 1 in rising order");
  }
  if (!isRising(steps, 0)) throw new CostError("steps have to be integers from 0 in rising order");
  const isRow = (row: unknown) =>
    Array.isArray(row) && row.length === batches.length &&
    row.every((rate) => typeof rate === "number" && rate > 0 && rate < Infinity);
  if (!Array.isArray(rates) || rates.length !== steps.length || !rates.every(isRow)) {
    throw new CostError(
      "rates have to be numbers above 0, a list for each depth with one for each batch size",
    );
  }
  return { format, source, batches, steps, rates };
}

function isRising(list: unknown, least: number): list is readonly number[] {
  return Array.isArray(list) && list.length > 0 &&
    list.every((each, at) => Number.isInteger(each) && each >= (at > 0 ? list[at - 1] + 1 : least));
}

/**
 * A machine on which rounds of depth K at batch b bring the published r(b, K) tokens a second on
 * average. Any acceptance with mean n(K) tokens a round is possible; the time is then
 *
 *     ms(b, K) = 1000 b n(K) / r(b, K)
 *
 * r is interpolated along log b. Below the smallest published batch the rate per sequence is constant, above the
 * largest one r itself is. Policies get no cost table, and prompts and catching up take no time, because nothing was
 * published about them.
 *
 * @param run.tokens of all requests, over which the acceptance is averaged.
 */
export function rewardPricing(
  rewards: RewardTable,
  acceptance: AcceptanceModel,
  run: { readonly tokens: number; readonly seed: number },
): Pricing {
  const { steps } = rewards;
  const tokens = new Map(
    steps.map((depth) => [depth, meanTokens(acceptance, depth, run)]),
  );
  return {
    name: rewards.source,
    table: undefined,
    buckets: rewards.batches,
    steps,
    round({ batch, steps: depth }) {
      const verify = 1000 * batch * (tokens.get(depth) ?? 1) / rateOf(rewards, batch, depth);
      return { draft: 0, verify, extend: 0, host: 0 };
    },
    catchUp: () => 0,
    prefill: () => 0,
  };
}

/** @throws UsageError for a depth that the table lacks. */
function rateOf({ batches, steps, rates, source }: RewardTable, batch: number, depth: number) {
  const row = rates[steps.indexOf(depth)];
  if (row === undefined) {
    throw new UsageError(
      `Cannot simulate ${depth} steps with "${source}": it has ${steps.join(", ")}`,
    );
  }
  const [first = 1, last = 1] = [batches[0], batches.at(-1)];
  if (batch <= first) return (row[0] ?? 0) * batch / first;
  if (batch >= last) return row.at(-1) ?? 0;
  const above = batches.findIndex((each) => each >= batch);
  const [low = 1, high = 1] = [batches[above - 1], batches[above]];
  const [from = 0, to = 0] = [row[above - 1], row[above]];
  return from + (to - from) * Math.log(batch / low) / Math.log(high / low);
}
