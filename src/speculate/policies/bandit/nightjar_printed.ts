import type { Policy, PolicySetup, RoundContext, RoundOutcome } from "../../policy.ts";
import { allowedSteps } from "../../asked_steps.ts";
import { chains } from "../../round_shape.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { addRate, argmax, type ArmMeans, noMeans } from "./arms.ts";
import { type BinClock, exploreChance, FIRST_BIN, nextRound } from "./bins.ts";
import { type ExploringOptions, readExploring } from "./options.ts";
import { lagOf, tableCatchUpMs } from "./prior.ts";
import { armReport } from "./report.ts";
import { rewardOf } from "./reward.ts";

type Options = ExploringOptions<never>;

interface State {
  /** gamma_(t-1), of the last round at any batch size; undefined before the first round. */
  readonly last: number | undefined;
  /** State of each batch size, absent before its first round. */
  readonly batches: Readonly<Record<string, Clocked>>;
}

interface Clocked {
  readonly clock: BinClock;
  /** Bins that are over, over all blocks. */
  readonly bins: number;
  /** Rounds. */
  readonly count: number;
  readonly goodput: ArmMeans;
}

/** What is drawn by chance. */
const BIN = 0;
const ARM = 1;

/**
 * Nightjar's Algorithm 1 and Eq. 3 (arXiv 2512.22420 v1) to the letter, to see what they do. Each
 * batch size B has its own state, with bins and blocks as in bins.ts:
 *
 *     a bin explores with chance 1 / sqrt(b): each of its rounds draws K uniformly
 *     else each round runs  argmin_K  1 / g[B, K] + I(K_(t-1) = 0 and K > 0) c_prefill / K
 *     g[B, K] += (r - g[B, K]) / n[B, K],  r the round's tokens a millisecond
 *
 * g is 0 before the first round, so 1 / g is infinite. Ties go to the shallowest arm, since the paper names
 * no rule. K_(t-1) is the depth of the last round at any batch size. c_prefill is the cost table's time if
 * every sequence had the longest lag of the batch, 0 without a table. Its unit, milliseconds a switch, does
 * not match that of 1 / g, milliseconds a token of the whole batch: with the paper's own numbers it is some
 * twenty times as large, so exploiting bins do not leave 0.
 */
export const NIGHTJAR_PRINTED: PolicyKind<Options> = policyKind({
  costs: true,
  examples: [{}, { steps: [0, 1, 2, 3, 4, 5], exploration: "inverse" }, { steps: [2] }],
  adapts: {
    stationary: 0.6,
    drift: 0.74,
    bursty: 0.69,
    improved: 0.45,
    why:
      "explores uniformly in a third of the rounds, a depth a round, which large batches pay dear; " +
      "c_prefill / K keeps exploiting bins at 0",
  },
  check: (given) => readExploring(given, {}, ["inverse-sqrt", "inverse"]),
  make: printed,
});

function printed({ steps, exploration }: Options, { random }: PolicySetup): Policy<State> {
  const tiers = chains(steps);
  const fresh: Clocked = { clock: FIRST_BIN, bins: 0, count: 0, goodput: noMeans(steps.length) };
  const draw = (counter: number, batch: number, purpose: number) =>
    random(counter, batch * 2 + purpose) / 2 ** 32;

  function armOf({ last, batches }: State, context: RoundContext): number {
    const { batchSize: batch, asked } = context;
    const allowed = allowedSteps(steps, asked);
    const { clock, bins, count, goodput } = batches[batch] ?? fresh;
    if (draw(bins, batch, BIN) < exploreChance(clock, exploration)) {
      return Math.floor(draw(count, batch, ARM) * allowed.length);
    }
    const prefill = last === 0 ? prefillMs(context) : 0;
    return argmax(allowed.map((depth, arm) => (
      -(1 / (goodput.mean[arm] ?? 0) + (depth > 0 ? prefill / depth : 0))
    )));
  }

  function learn(state: State, outcome: RoundOutcome): State {
    const { batchSize: batch, tier: { depth } } = outcome;
    const arm = steps.indexOf(depth);
    if (arm < 0) return state;
    const old = state.batches[batch] ?? fresh;
    const reward = rewardOf(outcome);
    const clock = nextRound(old.clock);
    const next: Clocked = {
      clock,
      bins: clock.round === 1 ? old.bins + 1 : old.bins,
      count: old.count + 1,
      goodput: reward ? addRate(old.goodput, arm, reward.tokens / reward.ms) : old.goodput,
    };
    return { last: depth, batches: { ...state.batches, [batch]: next } };
  }

  return {
    tiers,
    start: { last: undefined, batches: {} },
    pick: (state, context) => ({ tier: tiers[armOf(state, context)] as typeof tiers[number] }),
    // Each round draws or weighs again.
    holds: () => 1,
    learn: (state, outcome) => ({ state: learn(state, outcome) }),
    report: ({ batches }) =>
      armReport(
        Object.entries(batches).map(([batch, { goodput: { rounds, mean } }]) => ({
          batchSize: Number(batch),
          arms: steps.map((depth, arm) => (
            { steps: depth, rounds: rounds[arm] ?? 0, rate: mean[arm] }
          )),
        })),
      ),
  };
}

/** c_prefill(L_max, B) */
function prefillMs(context: RoundContext): number {
  return tableCatchUpMs(context, lagOf(context).most * context.batchSize) ?? 0;
}
