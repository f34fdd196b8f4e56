/** How long requests that decode may wait between two of their tokens (inter-token latency), as the user limits it. */
export interface ItlLimit {
  /** Longest time of a round, in milliseconds. */
  readonly roundMs: number;
  /** Longest time of the next group of rounds, where it has more than one. */
  readonly groupMs: number;
  /** Longest time of the next forward of prompts while others decode; not above 0: none is short enough. */
  readonly promptMs: number;
  /** Records the time of a forward of prompts that ran before the next group. */
  stored(ms: number): void;
  /** Records the time of a group. */
  ran(ms: number): void;
}

/** Recent groups by which the next one's time is predicted. With 8, too many groups took longer if requests draft. */
const GROUPS = 32;

/**
 * A forward of prompts runs between two groups of rounds, so the wait between tokens is that forward and the group
 * after it. Rounds may take half of `sloMs`. A forward gets `sloMs` less the second longest of the last groups, because
 * the longest may be a pause of the machine; the group after it gets what the forward left.
 *
 * @param sloMs default: no limit.
 */
export function openItlLimit(sloMs: number = Infinity): ItlLimit {
  let last: readonly number[] = [];
  let storedMs = 0;
  return {
    roundMs: sloMs / 2,
    get groupMs() {
      return Math.min(sloMs / 2, sloMs - storedMs);
    },
    get promptMs() {
      const [, second = last[0] ?? 0] = last.toSorted((a, b) => b - a);
      return sloMs - second;
    },
    stored: (ms) => void (storedMs += ms),
    ran(ms) {
      storedMs = 0;
      if (sloMs < Infinity) last = [...last, ms].slice(-GROUPS);
    },
  };
}
