/** How long requests that decode may wait between two of their tokens (inter-token latency). */
import { AWAITED_MS } from "./sync_interval.ts";

export interface ItlLimit {
  /** Longest time of a group of rounds that begins now, in milliseconds, and of its rounds; one round always runs. */
  readonly groupMs: number;
  /** Longest time of the next forward of prompts while others decode; not above 0: none is short enough. */
  readonly promptMs: number;
  /** Records the time of a forward of prompts that ran before the next group. */
  stored(ms: number): void;
  /** Called when a group begins. */
  began(): void;
  /** Records the time of a group. */
  ran(ms: number): void;
}

/** Recent groups by which the next one's time is predicted. With 8, too many groups took longer if requests draft. */
const GROUPS = 32;

/** The share of a forward's time that the group after it may take where the user sets no limit. */
const SHARE = 0.5;

/**
 * A forward of prompts runs between two groups of rounds, so the wait between tokens is that forward and the group
 * after it. Rounds may take half of `sloMs`. A forward gets `sloMs` less the second longest of the last groups, because
 * the longest may be a pause of the machine; the group after it gets what the forward left.
 *
 * @param sloMs the user's limit; default: none. Then the group after a forward takes at most AWAITED_MS or, where that
 * is longer, half as long as the forward, and nothing else is limited.
 */
export function openItlLimit(sloMs: number = Infinity): ItlLimit {
  let last: readonly number[] = [];
  let storedMs = 0;
  return {
    get groupMs() {
      if (sloMs < Infinity) return Math.min(sloMs / 2, sloMs - storedMs);
      if (storedMs === 0) return Infinity;
      return Math.max(AWAITED_MS, SHARE * storedMs);
    },
    get promptMs() {
      const [, second = last[0] ?? 0] = last.toSorted((a, b) => b - a);
      return sloMs - second;
    },
    stored: (ms) => void (storedMs += ms),
    began: () => void (storedMs = 0),
    ran(ms) {
      if (sloMs < Infinity) last = [...last, ms].slice(-GROUPS);
    },
  };
}
