/**
 * Nightjar's schedule (arXiv 2512.22420, Algorithm 1). Block j is made of bins, bins of rounds:
 *
 *     H = 2^(j-1),  floor(sqrt(H)) bins a block,  floor(sqrt(H)) rounds a bin
 *
 * because its tests `tau > sqrt(H)` and `b > sqrt(H)` count whole numbers: blocks have 1, 1, 4, 4, 16,
 * 25, 64, 121, ... rounds. All three count from 1.
 */
export interface BinClock {
  readonly block: number;
  readonly bin: number;
  /** The round within the bin that is next. */
  readonly round: number;
}

export const FIRST_BIN: BinClock = { block: 1, bin: 1, round: 1 };

/** floor(sqrt(H)): rounds of a bin, and bins of a block. */
export function binSize({ block }: BinClock): number {
  return Math.floor(Math.sqrt(2 ** (block - 1)));
}

/** After a round. */
export function nextRound(clock: BinClock): BinClock {
  return clock.round < binSize(clock) ? { ...clock, round: clock.round + 1 } : nextBin(clock);
}

/** After a bin. Blocks of `most` bins do not grow. */
export function nextBin(clock: BinClock, most: number = Infinity): BinClock {
  const { block, bin } = clock;
  const size = binSize(clock);
  if (bin < Math.min(size, most)) return { block, bin: bin + 1, round: 1 };
  return { block: size < most ? block + 1 : block, bin: 1, round: 1 };
}

/** How the probability that a bin explores falls with its number b in the block. */
const EXPLORATION_SCHEDULES = ["inverse", "inverse-sqrt"] as const;
export type ExplorationSchedule = typeof EXPLORATION_SCHEDULES[number];

/** 1 / b, or 1 / sqrt(b). */
export function exploreChance({ bin }: BinClock, exploration: ExplorationSchedule): number {
  return exploration === "inverse" ? 1 / bin : 1 / Math.sqrt(bin);
}
