import { acceptancePerPosition } from "../speculate/stats.ts";
import type { CellResult, RoundSample } from "./runner.ts";
import { average, median, sum } from "./statistics.ts";

/** The acceptance of drafts over all sequences of all rounds. */
export interface Acceptance {
  /** Mean tokens that a sequence gains in a round, with the bonus token; null if there was no round. */
  readonly meanAcceptLength: number | null;
  /** Accepted drafts over verified drafts; null if there were none. */
  readonly draftAcceptanceRate: number | null;
  /** As `acceptancePerPosition`, up to the deepest draft that was verified. */
  readonly perPosition: readonly number[];
}

/** The acceptance of these rounds. */
export function acceptanceOf(rounds: readonly RoundSample[]): Acceptance {
  // Each round of each sequence. A tree has more drafts than levels, a partly verified chain fewer.
  const sequences = rounds.flatMap(({ accepted, numSteps, drafts }) =>
    accepted.map((count, i) => ({ accepted: count, depth: Math.min(numSteps, drafts[i] ?? 0) }))
  );
  const accepted = sum(sequences.map(({ accepted }) => accepted));
  const verified = sum(rounds.flatMap(({ drafts }) => drafts));
  const deepest = sequences.reduce((most, { depth }) => Math.max(most, depth), 0);
  return {
    meanAcceptLength: sequences.length === 0 ? null : 1 + accepted / sequences.length,
    draftAcceptanceRate: verified === 0 ? null : accepted / verified,
    perPosition: acceptancePerPosition(sequences, deepest),
  };
}

/** Mean milliseconds of a round and of its parts. */
export interface RoundMs {
  readonly draft: number;
  readonly verify: number;
  readonly extend: number;
  readonly host: number;
  readonly total: number;
}

/** The mean times of these rounds; 0 if there are none. */
export function roundMs(rounds: readonly RoundSample[]): RoundMs {
  const mean = (part: (round: RoundSample) => number) => average(rounds.map(part));
  return {
    draft: mean(({ draftMs }) => draftMs),
    verify: mean(({ verifyMs }) => verifyMs),
    extend: mean(({ extendMs }) => extendMs),
    host: mean(({ hostMs }) => hostMs),
    total: mean(({ ms }) => ms),
  };
}

/**
 * The number of rounds over the number of syncs, where a round that is one of n submitted together counts 1/n syncs.
 * Null if there are no rounds.
 */
export function meanRoundsPerSync(rounds: readonly RoundSample[]): number | null {
  const syncs = sum(rounds.map(({ together }) => 1 / together));
  return syncs === 0 ? null : rounds.length / syncs;
}

/**
 * c(M) / c(1): the median verify time of a round over the median step of plain decoding. Rounds with the whole batch in
 * flight are used if there are any. Null if one of the two was not measured.
 */
export function verifyCostRatio(
  rounds: readonly RoundSample[],
  plain: readonly RoundSample[],
  batch: number,
): number | null {
  const cost = (of: readonly RoundSample[]) => {
    const full = of.filter((round) => round.batch === batch);
    return median((full.length > 0 ? full : of).map(({ verifyMs }) => verifyMs));
  };
  const one = cost(plain);
  return rounds.length === 0 || one === 0 ? null : cost(rounds) / one;
}

/** Share of the time in each tier over all blocks, weighted by the duration of each block. */
export function tierShare(blocks: readonly CellResult[]): Record<string, number> {
  const seconds = sum(blocks.map((block) => block.seconds));
  const shares: Record<string, number> = {};
  for (const block of blocks) {
    for (const [tier, share] of Object.entries(block.tierShare)) {
      shares[tier] = (shares[tier] ?? 0) + share * block.seconds / seconds;
    }
  }
  return shares;
}

/** A cell over time with few enough points to draw. Times are in milliseconds from the start of the cell. */
export interface Timeline {
  /** Mean accept length of consecutive groups of rounds, at the middle of each group. */
  readonly accept: readonly { readonly t_ms: number; readonly length: number }[];
  /** The tier from each time on; the last entry is the end of the cell. */
  readonly steps: readonly { readonly t_ms: number; readonly num_steps: number }[];
}

const STRETCHES = 60;

/** The timeline of the rounds of a cell. */
export function timelineOf(rounds: readonly RoundSample[]): Timeline {
  const size = Math.max(1, Math.ceil(rounds.length / STRETCHES));
  const accept = Array.from({ length: Math.ceil(rounds.length / size) }, (_, at) => {
    const stretch = rounds.slice(at * size, (at + 1) * size);
    return {
      t_ms: average(stretch.map(({ tMs, ms }) => tMs + ms / 2)),
      length: acceptanceOf(stretch).meanAcceptLength ?? 0,
    };
  });
  const steps = rounds
    .filter(({ numSteps }, at) => numSteps !== rounds[at - 1]?.numSteps)
    .map(({ tMs, numSteps }) => ({ t_ms: tMs, num_steps: numSteps }));
  const last = rounds.at(-1);
  if (last !== undefined) steps.push({ t_ms: last.tMs + last.ms, num_steps: last.numSteps });
  return { accept, steps };
}
