import { allowedSteps } from "../../asked_steps.ts";
import { DEFAULT_NUM_STEPS } from "../../fixed_shape.ts";
import { type Policy, PolicyError, type RoundOutcome } from "../../policy.ts";
import { chain, chains } from "../../round_shape.ts";
import { numberOf, readOptions, stepsOf } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { aged, decided, type DecisionInterval } from "./interval.ts";

export interface EmaCensoredOptions {
  /** Depths to choose among, 1 and more. */
  readonly steps: readonly number[];
  /** Weight of the newest round. */
  readonly alpha: number;
}

/**
 * An average of accepted drafts that knows about censoring, of a fork of llama.cpp
 * (Nathanw1014/strix-halo-llamacpp, pull request 11). A chain that is accepted whole says only "at
 * least this deep", so it counts as one deeper:
 *
 *     ema += alpha (mean of (accepted < depth ? accepted : depth + 1) - ema)
 *
 * and the next round has the fewest steps that are at least round(ema). The fork keeps an average for one
 * request; here the requests of a round share it. The cost of rounds is not considered.
 */
export const EMA_CENSORED: PolicyKind<EmaCensoredOptions> = policyKind({
  examples: [{}, { steps: [1, 4], alpha: 1 }],
  adapts: { stationary: 0.7, why: "weighs no cost: it drafts about as many as are accepted" },
  check(given) {
    const { steps, alpha } = readOptions(given, ["steps", "alpha"]);
    const own = stepsOf(steps, [1, 2, 3, 4, 5, 7]);
    if (own[0] === 0) throw new PolicyError("steps must be 1 or more: 0 steps teach nothing");
    return { steps: own, alpha: numberOf(alpha, "alpha", { absent: 0.25, min: 0, max: 1 }) };
  },
  make: (options, { numSteps }) => emaCensored(options, numSteps),
});

function emaCensored(
  { steps, alpha }: EmaCensoredOptions,
  numSteps: number = DEFAULT_NUM_STEPS,
): Policy<DecisionInterval<number>> {
  const depth = (ema: number, allowed = steps) =>
    allowed.find((each) => each >= Math.round(ema)) ?? allowed.at(-1) as number;
  return {
    tiers: chains(steps),
    start: decided(numSteps),
    pick: ({ known }, { asked }) => ({ tier: chain(depth(known, allowedSteps(steps, asked))) }),
    holds: ({ left }) => left,
    mayLag: () => true,
    learn(state, outcome) {
      const next = aged(state, averaged(state.live, outcome, alpha), outcome.ms.round);
      const [from, to] = [depth(state.known), depth(next.known)];
      const reason = `steps ${from} -> ${to} (ema ${next.known.toFixed(2)})`;
      return from === to ? { state: next } : { state: next, change: { from, to, reason } };
    },
    report: ({ live }) => ({ json: { ema: live }, rows: [["ema", live.toFixed(2)]] }),
  };
}

function averaged(ema: number, { sequences }: RoundOutcome, alpha: number): number {
  const counts = sequences
    .filter(({ depth, accepted }) =>
      depth > 0 && Number.isSafeInteger(depth) && Number.isSafeInteger(accepted) && accepted >= 0
    )
    .map(({ depth, accepted }) => accepted < depth ? accepted : depth + 1);
  if (counts.length === 0) return ema;
  return ema + alpha * (counts.reduce((sum, count) => sum + count, 0) / counts.length - ema);
}
