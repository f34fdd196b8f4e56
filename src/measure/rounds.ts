import type { CellResult, RoundSample } from "./runner.ts";
import { average, median, sum } from "./statistics.ts";

/** How drafts fared, over all sequences of all rounds. */
export interface Acceptance {
  /** Tokens a sequence gains in a round, the bonus included; null where there was no round. */
  readonly meanAcceptLength: number | null;
  /** Drafts accepted over drafts made; null where nothing was drafted. */
  readonly draftAcceptanceRate: number | null;
  /** Of the rounds that drafted position k, the share that accepted it (and so all before it). */
  readonly perPosition: readonly number[];
}

/** Adds up what was accepted. */
export function acceptanceOf(rounds: readonly RoundSample[]): Acceptance {
  const lanes = rounds.flatMap(({ accepted, numSteps, drafted = numSteps }) =>
    accepted.map((count) => ({ count, numSteps, drafted }))
  );
  const accepted = sum(lanes.map(({ count }) => count));
  const drafted = sum(lanes.map(({ drafted }) => drafted));
  const deepest = lanes.reduce((most, { numSteps }) => Math.max(most, numSteps), 0);
  return {
    meanAcceptLength: lanes.length === 0 ? null : 1 + accepted / lanes.length,
    draftAcceptanceRate: drafted === 0 ? null : accepted / drafted,
    perPosition: Array.from({ length: deepest }, (_, position) => {
      const tried = lanes.filter(({ numSteps }) => numSteps > position);
      return tried.filter(({ count }) => count > position).length / tried.length;
    }),
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

/** Rounds over syncs: a round of `together` is that part of one. Null where there was none. */
export function meanRoundsPerSync(rounds: readonly RoundSample[]): number | null {
  const syncs = sum(rounds.map(({ together }) => 1 / together));
  return syncs === 0 ? null : rounds.length / syncs;
}

/**
 * c(M) / c(1): the median verify of a round over the median decode step of plain rounds, both
 * with the whole batch in flight where there are such rounds. Null where one is not measured.
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

/** Share of the blocks' time by tier: each block counts as much as it lasted. */
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

/** How a cell went over time, thin enough to draw. Milliseconds from the start of the cell. */
export interface Timeline {
  /** Mean accept length of consecutive stretches of rounds, at the middle of each. */
  readonly accept: readonly { readonly t_ms: number; readonly length: number }[];
  /** The tier from each of these times on; the last entry is the end. */
  readonly steps: readonly { readonly t_ms: number; readonly num_steps: number }[];
}

const STRETCHES = 60;

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
