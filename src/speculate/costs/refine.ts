import { catchUpMs, paddedBatch, type PricedRound, roundMs } from "./lookup.ts";
import type { CostTable, Refined, RoundRatio } from "./table.ts";

/** Shares of an error in the logarithm that the factor of all rounds takes, and that of its kind. */
const [SHARE_ALL, SHARE_OWN] = [0.05, 0.1];
/** An error counts as this at most: one round in a pause of the machine says little. */
const MOST_ERROR = Math.LN2;
/** Factors stay within this and its inverse. */
const MOST_RATIO = 16;

const UNREFINED: Refined = { all: 1, rounds: [], catchUp: 1 };

/**
 * The table after a round that took `ms`. With e = log(ms / predicted), clamped, two moving averages
 * of the logarithm share the error: one of all rounds, which also says something of kinds that were
 * not run since the machine became slower, and one of rounds of its padded batch and steps:
 *
 *     all' = all exp(0.05 e), ratio' = ratio exp(0.1 e)
 *
 * A time that is not above 0 and finite, or that nothing is predicted for, changes nothing.
 */
export function refineRound(costs: CostTable, round: PricedRound, ms: number): CostTable {
  const error = errorOf(ms, roundMs(costs, round));
  if (error === undefined) return costs;
  const { all, rounds, catchUp } = costs.refined ?? UNREFINED;
  const batch = paddedBatch(costs, round.batch);
  const { steps } = round;
  const at = rounds.findIndex((each) => each.batch === batch && each.steps === steps);
  const ratio = moved(rounds[at]?.ratio ?? 1, SHARE_OWN * error);
  const one: RoundRatio = { batch, steps, ratio };
  const next = at < 0 ? [...rounds, one] : rounds.with(at, one);
  return { ...costs, refined: { all: moved(all, SHARE_ALL * error), rounds: next, catchUp } };
}

/** The table after the draft caught up on `tokens`, over all sequences, in `ms`. */
export function refineCatchUp(costs: CostTable, tokens: number, ms: number): CostTable {
  const error = errorOf(ms, catchUpMs(costs, tokens));
  if (error === undefined) return costs;
  const refined = costs.refined ?? UNREFINED;
  const catchUp = moved(refined.catchUp, (SHARE_ALL + SHARE_OWN) * error);
  return { ...costs, refined: { ...refined, catchUp } };
}

/** Of the logarithm; undefined where there is none. */
function errorOf(ms: number, expected: number): number | undefined {
  if (!(ms > 0 && ms < Infinity && expected > 0 && expected < Infinity)) return undefined;
  return Math.min(MOST_ERROR, Math.max(-MOST_ERROR, Math.log(ms / expected)));
}

function moved(ratio: number, by: number): number {
  return Math.min(MOST_RATIO, Math.max(1 / MOST_RATIO, ratio * Math.exp(by)));
}
