import { parseCosts } from "../../speculate/costs/parse.ts";
import type { AcceptanceModel } from "../acceptance/model.ts";
import { type Pricing, tablePricing } from "./pricing.ts";
import { parseRewards, REWARD_FORMAT, rewardPricing } from "./rewards.ts";

/** Where prices come from: rewards have them only together with an acceptance. */
export type PriceSource = (
  acceptance: AcceptanceModel,
  run: { readonly tokens: number; readonly seed: number },
) => Pricing;

/**
 * The prices of a cost table or of a table of published rates, as its JSON file has it.
 *
 * @throws CostError for what is neither.
 */
export function pricesOf(json: unknown): PriceSource {
  if (formatOf(json) === REWARD_FORMAT) {
    const rewards = parseRewards(json);
    return (acceptance, run) => rewardPricing(rewards, acceptance, run);
  }
  const pricing = tablePricing(parseCosts(json));
  return () => pricing;
}

function formatOf(json: unknown): unknown {
  return typeof json === "object" && json !== null && "format" in json ? json.format : undefined;
}
