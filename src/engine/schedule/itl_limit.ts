/** How long requests that decode may wait between two of their tokens (inter-token latency), as the user limits it. */
export interface ItlLimit {
  /** Milliseconds that a round should take at most, and that a group of several may. */
  readonly groupMs: number;
  /** Milliseconds that the next forward of prompts may take while others decode. */
  readonly promptMs: number;
  /** Takes note of a group of rounds that took `ms`. */
  learn(ms: number): void;
}

/** Groups whose longest is taken for the next one: of 8 too many are longer where requests draft. */
const GROUPS = 32;

/**
 * A forward of prompts comes between two groups of rounds, so that tokens are apart by that forward and the group after
 * it. Rounds may last half of `sloMs`; the forward gets what the longest of the last groups left.
 *
 * @param sloMs default: no limit.
 */
export function openItlLimit(sloMs: number = Infinity): ItlLimit {
  let last: readonly number[] = [];
  return {
    groupMs: sloMs / 2,
    get promptMs() {
      return sloMs - Math.max(0, ...last);
    },
    learn: (ms) => void (last = [...last, ms].slice(-GROUPS)),
  };
}
