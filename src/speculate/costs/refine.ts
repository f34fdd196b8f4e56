import {
  catchUpMs,
  paddedBatch,
  type PricedChunk,
  type PricedRound,
  promptsMs,
  roundMs,
} from "./lookup.ts";
import type { CostTable, Refined, RoundRatio } from "./table.ts";

/** Shares of a round's log error that are added to the factor of all rounds and to that of its kind. */
const [SHARE_ALL, SHARE_OWN] = [0.05, 0.1];
/** The largest error that counts: one round during a pause of the machine says little. */
const MAX_ERROR = Math.LN2;
/** Factors stay within this and its inverse. */
const MAX_RATIO = 16;

const UNREFINED: Refined = { all: 1, rounds: [], catchUp: 1 };

/**
 * The table after a round that took `ms`. With e = log(ms / predicted), clamped, two moving averages
 * of the logarithm share the error: one of all rounds, which also says something of kinds that were
 * not run since the machine became slower, and one of rounds of its padded batch and steps:
 *
 *     all' = all exp(0.05 e), ratio' = ratio exp(0.1 e)
 *
 * A time that is not finite and above 0, or that has no prediction, changes nothing.
 */
export function refineRound(costs: CostTable, round: PricedRound, ms: number): CostTable {
  const error = errorOf(ms, roundMs(costs, round));
  if (error === undefined) return costs;
  const { all, rounds, ...prefills } = costs.refined ?? UNREFINED;
  const batch = paddedBatch(costs, round.batch);
  const { steps } = round;
  const at = rounds.findIndex((each) => each.batch === batch && each.steps === steps);
  const ratio = moved(rounds[at]?.ratio ?? 1, SHARE_OWN * error);
  const one: RoundRatio = { batch, steps, ratio };
  const next = at < 0 ? [...rounds, one] : rounds.with(at, one);
  return { ...costs, refined: { all: moved(all, SHARE_ALL * error), rounds: next, ...prefills } };
}

/** The table after the draft caught up on `tokens`, over all sequences, in `ms`. */
export function refineCatchUp(costs: CostTable, tokens: number, ms: number): CostTable {
  const error = errorOf(ms, catchUpMs(costs, tokens));
  if (error === undefined) return costs;
  const refined = costs.refined ?? UNREFINED;
  const catchUp = moved(refined.catchUp, (SHARE_ALL + SHARE_OWN) * error);
  return { ...costs, refined: { ...refined, catchUp } };
}

/** The table after these chunks of prompts were stored in `ms`, in so many rows with padding (`promptsMs`). */
export function refinePrefill(
  costs: CostTable,
  chunks: readonly PricedChunk[],
  ms: number,
  rows?: number,
): CostTable {
  const error = errorOf(ms, promptsMs(costs, chunks, rows));
  if (error === undefined) return costs;
  const refined = costs.refined ?? UNREFINED;
  const prefill = moved(refined.prefill ?? 1, (SHARE_ALL + SHARE_OWN) * error);
  return { ...costs, refined: { ...refined, prefill } };
}

/** What was measured of a run. */
export interface RunTimes {
  readonly rounds: readonly { readonly round: PricedRound; readonly ms: number }[];
  /** Forwards of prompts. */
  readonly prefills: readonly { readonly chunks: readonly PricedChunk[]; readonly ms: number }[];
}

/**
 * The table with factors that give a run's own mean times, whatever it was refined by before: of all
 * rounds, of each kind, and of prompts
 *
 *     sum of ms / sum of what the lists say
 */
export function refinedTo(costs: CostTable, { rounds, prefills }: RunTimes): CostTable {
  const { refined: { catchUp } = UNREFINED, ...listed } = costs;
  const ratio = (of: RunTimes["rounds"]) =>
    ratioOf(of.map(({ round, ms }) => [ms, roundMs(listed, round)]));
  const all = ratio(rounds);
  const kinds = Map.groupBy(
    rounds,
    ({ round: { batch, steps } }) => `${paddedBatch(costs, batch)} ${steps}`,
  );
  const own = [...kinds.values()].map((of): RoundRatio => {
    const { batch, steps } = (of[0] as RunTimes["rounds"][number]).round;
    return { batch: paddedBatch(costs, batch), steps, ratio: moved(ratio(of) / all, 0) };
  });
  const prefill = ratioOf(prefills.map(({ chunks, ms }) => [ms, promptsMs(listed, chunks)]));
  return { ...listed, refined: { all, rounds: own, catchUp, prefill } };
}

/** The sum of ms over the sum of expected ms; 1 for an empty list. */
function ratioOf(times: readonly (readonly [ms: number, expected: number])[]): number {
  const known = times.filter(([ms, expected]) => errorOf(ms, expected) !== undefined);
  const sum = (at: 0 | 1) => known.reduce((total, each) => total + each[at], 0);
  return known.length === 0 ? 1 : moved(sum(0) / sum(1), 0);
}

/** Error of the logarithm; undefined if there is none. */
function errorOf(ms: number, expected: number): number | undefined {
  if (!(ms > 0 && ms < Infinity && expected > 0 && expected < Infinity)) return undefined;
  return Math.min(MAX_ERROR, Math.max(-MAX_ERROR, Math.log(ms / expected)));
}

function moved(ratio: number, by: number): number {
  return Math.min(MAX_RATIO, Math.max(1 / MAX_RATIO, ratio * Math.exp(by)));
}
