/** Counts of one finished request; the names are those of `--json`. */
export interface SpeculativeStats {
  /** Algorithm of the draft model: EAGLE, EAGLE3, NEXTN or STANDALONE; the name of the drafter on the host; or NONE. */
  readonly algorithm: string;
  readonly num_steps: number;
  readonly eagle_topk: number;
  readonly num_draft_tokens: number;
  readonly rounds: number;
  readonly draft_tokens: number;
  /** Drafts only, the bonus token not counted. */
  readonly accepted_tokens: number;
  /** Tokens a round, the bonus included; 0 when there was no round. */
  readonly mean_accept_length: number;
  readonly draft_acceptance_rate: number;
  /** As `acceptancePerPosition`. */
  readonly acceptance_per_position: readonly number[];
  readonly accepted_per_round: readonly number[];
}

/** The setting that the rounds ran with. */
export type SpeculativeSetting = Pick<
  SpeculativeStats,
  "algorithm" | "num_steps" | "eagle_topk" | "num_draft_tokens"
>;

/** One round: drafts verified and accepted up to the end of the output, and tokens that became output. */
export interface RoundCount {
  readonly drafted: number;
  /** Levels of its drafts: for a chain the same as `drafted`. */
  readonly depth: number;
  readonly accepted: number;
  /** `accepted + 1`, the bonus included; fewer where the output ended within the round. */
  readonly emitted: number;
}

/** Adds up the rounds of a request. Rates are 0 where there is nothing to divide by. */
export function speculativeStats(
  setting: SpeculativeSetting,
  rounds: readonly RoundCount[],
): SpeculativeStats {
  const drafted = rounds.reduce((total, round) => total + round.drafted, 0);
  const accepted = rounds.reduce((total, round) => total + round.accepted, 0);
  const emitted = rounds.reduce((total, round) => total + round.emitted, 0);
  const { algorithm, num_steps, eagle_topk, num_draft_tokens } = setting;
  return {
    algorithm,
    num_steps,
    eagle_topk,
    num_draft_tokens,
    rounds: rounds.length,
    draft_tokens: drafted,
    accepted_tokens: accepted,
    mean_accept_length: ratio(emitted, rounds.length),
    draft_acceptance_rate: ratio(accepted, drafted),
    acceptance_per_position: acceptancePerPosition(rounds, num_steps),
    accepted_per_round: rounds.map((round) => round.accepted),
  };
}

/**
 * By position k: of the rounds that verified a draft at k, the share that accepted one there, and so at all positions
 * before it; 0 where no round verified one.
 */
export function acceptancePerPosition(
  rounds: readonly Pick<RoundCount, "depth" | "accepted">[],
  positions: number,
): number[] {
  return Array.from({ length: positions }, (_, position) => {
    const verified = rounds.filter(({ depth }) => depth > position);
    return ratio(verified.filter(({ accepted }) => accepted > position).length, verified.length);
  });
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
