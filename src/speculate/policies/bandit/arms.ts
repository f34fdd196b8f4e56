/** Sums over the rounds of each arm; with a discount newer rounds have more weight. */
export interface ArmSums {
  readonly rounds: readonly number[];
  readonly tokens: readonly number[];
  readonly ms: readonly number[];
}

export function noSums(arms: number): ArmSums {
  const none: readonly number[] = Array(arms).fill(0);
  return { rounds: none, tokens: none, ms: none };
}

/** Adds a round; what was there before counts `discount` times as much. */
export function addRound(
  { rounds, tokens, ms }: ArmSums,
  { arm, discount, tokens: more, ms: took }: {
    readonly arm: number;
    readonly discount: number;
    readonly tokens: number;
    readonly ms: number;
  },
): ArmSums {
  return {
    rounds: addTerm(rounds, { arm, term: 1, discount }),
    tokens: addTerm(tokens, { arm, term: more, discount }),
    ms: addTerm(ms, { arm, term: took, discount }),
  };
}

/** Multiplies each sum by `discount` and adds the term to the arm's sum. */
export function addTerm(
  sums: readonly number[],
  { arm, term, discount }: {
    readonly arm: number;
    readonly term: number;
    readonly discount: number;
  },
): number[] {
  return sums.map((sum, i) => sum * discount + (i === arm ? term : 0));
}

/** Means of rounds' rates by arm, in tokens a millisecond, each round with one vote. */
export interface ArmMeans {
  readonly rounds: readonly number[];
  readonly mean: readonly number[];
}

export function noMeans(arms: number): ArmMeans {
  const none: readonly number[] = Array(arms).fill(0);
  return { rounds: none, mean: none };
}

/** mean += (rate - mean) / rounds */
export function addRate({ rounds, mean }: ArmMeans, arm: number, rate: number): ArmMeans {
  const [count, old] = [(rounds[arm] ?? 0) + 1, mean[arm] ?? 0];
  return { rounds: rounds.with(arm, count), mean: mean.with(arm, old + (rate - old) / count) };
}

/** The first index of the largest score. */
export function argmax(scores: readonly number[]): number {
  let best = 0;
  for (const [i, score] of scores.entries()) if (score > (scores[best] ?? -Infinity)) best = i;
  return best;
}

/** The order in which arms without a round are tried: first the one to begin with, then by rising depth. */
export function tryOrder(steps: readonly number[], numSteps: number): number[] {
  const distance = (arm: number) => Math.abs((steps[arm] ?? 0) - numSteps);
  const first = argmax(steps.map((_, arm) => -distance(arm)));
  return [first, ...steps.keys().filter((arm) => arm !== first)];
}
