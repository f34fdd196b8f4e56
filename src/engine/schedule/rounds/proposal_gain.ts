/** Weight of the newest round in a moving average. */
const NEWEST = 0.1;

/** What it is worth to ask the host's drafter after every round. */
export interface ProposalGain {
  /** Rounds that asking one round sooner is expected to save: 0 where nothing is ever proposed. */
  readonly rounds: number;
  /** Records that the drafter was asked after this many rounds without a proposal, and whether it proposed one. */
  asked(rounds: number, proposed: boolean): void;
  /** Records how many tokens per sequence a round had, with or without a proposal. */
  brought(tokens: number, proposed: boolean): void;
}

/**
 * The probability that a proposal follows a round without one, times what a round with a proposal brings more:
 *
 *     gain = p max(0, tokens with / tokens without - 1)
 *
 * Until both numbers of tokens are known, the gain is p, which begins at 1.
 */
export function openProposalGain(): ProposalGain {
  let chance = 1;
  let [lone, proposed]: (number | undefined)[] = [];
  return {
    get rounds() {
      if (lone === undefined || proposed === undefined) return chance;
      return chance * Math.max(0, proposed / lone - 1);
    },
    asked: (rounds, found) => void (chance += NEWEST * (Number(found) / rounds - chance)),
    brought(tokens, by) {
      if (by) proposed = mean(proposed, tokens);
      else lone = mean(lone, tokens);
    },
  };
}

function mean(old: number | undefined, newest: number): number {
  return old === undefined ? newest : old + NEWEST * (newest - old);
}
