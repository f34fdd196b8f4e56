import type { RoundOutcome } from "../../policy.ts";

/** The evidence of a round for its depth. */
export interface Reward {
  /** Accepted drafts and one token more of each sequence. */
  readonly tokens: number;
  /** Milliseconds of the round alone. */
  readonly ms: number;
  /** Milliseconds of the draft's prefill before it, 0 for most rounds. */
  readonly catchUp: number;
}

/** Range of measured milliseconds: from the clock's resolution to an hour. */
const MEASURABLE = { min: 1e-3, max: 3.6e6 };

/** Undefined if a time or a count is not valid, because it would spoil a sum for good. */
export function rewardOf({ tier, sequences, ms }: RoundOutcome): Reward | undefined {
  if (!(ms.round >= MEASURABLE.min && ms.round <= MEASURABLE.max)) return undefined;
  let tokens = 0;
  for (const { accepted } of sequences) {
    if (Number.isInteger(accepted) && accepted >= 0) tokens += Math.min(accepted, tier.depth) + 1;
  }
  const catchUp = ms.catchUp > 0 && ms.catchUp <= MEASURABLE.max ? ms.catchUp : 0;
  return tokens === 0 ? undefined : { tokens, ms: ms.round, catchUp };
}

/** Tokens a millisecond over the whole time of the round, its catch-up prefill included. */
export function wallRate({ tokens, ms, catchUp }: Reward): number {
  return tokens / (ms + catchUp);
}
