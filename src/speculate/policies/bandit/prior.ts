import { breakEven } from "../../break_even.ts";
import { catchUpMs, roundMs } from "../../costs/lookup.ts";
import type { RoundContext } from "../../policy.ts";

/** A round as the cost table has it. */
export interface PriorRound {
  readonly tokens: number;
  readonly ms: number;
}

const { tokens: tokensOf } = breakEven();

/**
 * The expected result of a round of each depth before any was measured: b n(alpha, K) tokens in the
 * cost table's milliseconds. Undefined without a table, or if the table has no time for such a round.
 */
export function priorRounds(
  { costs, batchSize, sequences, roundsPerSync }: RoundContext,
  steps: readonly number[],
  alpha: number,
): readonly PriorRound[] | undefined {
  if (costs === undefined || batchSize < 1) return undefined;
  const cells = sequences.reduce((sum, { position }) => sum + count(position), 0);
  const rounds = steps.map((depth) => ({
    tokens: batchSize * tokensOf(alpha, depth),
    ms: roundMs(costs, {
      batch: batchSize,
      steps: depth,
      cells,
      roundsPerSync: Math.max(1, count(roundsPerSync)),
    }),
  }));
  return rounds.every(({ ms }) => ms > 0 && Number.isFinite(ms)) ? rounds : undefined;
}

/** Tokens that the draft has missed: the sum over all sequences, and the largest of one sequence. */
export function lagOf(
  { sequences }: RoundContext,
): { readonly total: number; readonly most: number } {
  let [total, most] = [0, 0];
  for (const { lag } of sequences) {
    total += count(lag);
    most = Math.max(most, count(lag));
  }
  return { total, most };
}

/** Milliseconds of the draft's prefill of this many tokens, if there is a table. */
export function tableCatchUpMs({ costs }: RoundContext, tokens: number): number | undefined {
  const ms = costs && catchUpMs(costs, tokens);
  return Number.isFinite(ms) ? ms : undefined;
}

/** Returns 0 for a value that is not a valid count. */
function count(given: number): number {
  return Number.isSafeInteger(given) && given > 0 ? given : 0;
}
