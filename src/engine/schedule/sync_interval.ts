import { type DraftShape, tierText } from "../../speculate/round_shape.ts";
import { MAX_ROUNDS } from "../device/submit/submit.ts";

/** Share of the time that the device may wait for the host. */
export const SHARE = 0.02;
/** Milliseconds a group of rounds may last, so that text still flows. */
const LONGEST_MS = 50;
/**
 * The same next to a forward of prompts, because decoding requests wait for both: while requests wait, and for the
 * group after it (itl_limit.ts).
 */
export const AWAITED_MS = 18;
/**
 * If the next group is submitted before a group ends, the group's rounds take at least this many times the host's part.
 */
const MARGIN = 2;
/** Milliseconds that are not noticed: a group may always last this long. */
const UNSEEN_MS = 2;
/** Rounds that a group may have however soon its sequences may end. */
const FEW_ROUNDS = 8;
/** The weight of a group relative to the one after it. */
const OLDER = 0.9;
/**
 * Standard deviation of the sizes of groups, over their mean, that is needed to separate the time of rounds from that
 * of the host.
 */
const SPREAD = 0.1;

/** How many rounds to submit at once; "auto" decides by what host and device take. */
export type RoundsPerSync = number | "auto";

/** A group of n rounds takes host + n * round: submission, the wait for its end, the read; then each round. */
export interface GroupTimes {
  readonly hostMs: number;
  readonly roundMs: number;
}

/** What decides how many rounds to submit at once. */
export interface AheadOf {
  /** Rounds that asking the host's drafter one round sooner saves; default 0: it is not asked. */
  readonly gain?: number;
  /** Rounds until the last sequence ends, as far as one can tell; default: no more than a few. */
  readonly toCome?: number;
  /** The next group is begun while this one runs, so the device does not wait for the host; default false. */
  readonly overlapped?: boolean;
  /** Requests wait for a place; default false. */
  readonly awaited?: boolean;
  /** Milliseconds that a group may last at most; default: no further limit. */
  readonly longestMs?: number;
}

/**
 * The smallest n with host / (host + n round) at most SHARE, within MAX_ROUNDS and LONGEST_MS, or AWAITED_MS, and
 * `longestMs`:
 *
 *     n = ceil(host / round * (1 - SHARE) / SHARE)
 *
 * If the next group is submitted while this one runs, the host's time is hidden as long as it is shorter:
 *
 *     n = ceil(MARGIN host / round)
 *
 * Sequences end within a group, in its middle on average: a text of L further rounds costs L / n times the host's part
 * and n / 2 wasted rounds. The sum is smallest at
 *
 *     n = sqrt(2 host L / round)
 *
 * If the host may draft between groups, a group of n rounds saves (n - 1) host, and is expected to lose gain * round
 * for each of its n (n - 1) / 2 rounds of delay. Per round that is best at
 *
 *     n = sqrt(2 host / (gain round))
 */
export function roundsWorth(
  { hostMs, roundMs }: GroupTimes,
  { gain = 0, toCome = 0, overlapped = false, awaited = false, longestMs = Infinity }: AheadOf = {},
): number {
  const hidden = Math.ceil(hostMs / roundMs * (overlapped ? MARGIN : (1 - SHARE) / SHARE));
  const usual = (awaited ? AWAITED_MS : LONGEST_MS) / roundMs;
  const flowing = Math.floor(Math.min(usual, (longestMs - hostMs) / roundMs));
  const soon = gain > 0 ? Math.floor(Math.sqrt(2 * hostMs / (gain * roundMs))) : Infinity;
  const cheapest = Math.floor(Math.sqrt(2 * hostMs * toCome / roundMs));
  const lasting = Math.max(FEW_ROUNDS, cheapest);
  return Math.max(1, Math.min(hidden, flowing, soon, lasting, MAX_ROUNDS));
}

/** Tokens that a text which has just begun is expected to get at least. */
const SOME_TOKENS = 16;

/** A text as it is before the rounds to be submitted. */
export interface TextSoFar {
  readonly tokens: number;
  /** Tokens that it may still get. */
  readonly left: number;
  /** Whether an end token may end it earlier. */
  readonly ends: boolean;
}

/**
 * Rounds for which the longest of these texts is expected to continue. A text that a token may end is expected to get
 * as many more tokens as it has, at least SOME_TOKENS; no text gets more than `left`.
 */
export function roundsToCome(texts: readonly TextSoFar[], numSteps: number): number {
  const tokens = texts.map(({ tokens, left, ends }) =>
    ends ? Math.min(left, Math.max(SOME_TOKENS, tokens)) : left
  );
  return Math.ceil(Math.max(0, ...tokens) / (numSteps + 1));
}

/** The sequences of a group to come. */
export interface GroupOf {
  /** Tokens that each may still get. */
  readonly left: readonly number[];
  readonly numSteps: number;
  /** A prompt is not stored yet: it gets a chunk between any two rounds. */
  readonly prefilling: boolean;
  /** Requests wait for a place. */
  readonly waiting: boolean;
  /** They wait for pages, so none are reserved ahead. */
  readonly short: boolean;
}

/**
 * Rounds that surely have work to do. A round gives at most num_steps + 1 tokens, so none is wasted on a sequence with
 * left tokens before round ceil(left / (num_steps + 1)). While requests wait for a place, the sequence that may end
 * first decides; otherwise the one that may continue longest, and sequences that end earlier keep their places in the
 * batch until then. A prompt waits for one round at most. A waiting request may wait longer, for AWAITED_MS at most, if
 * a sequence ends within the group.
 */
export function roundsUseful({ left, numSteps, prefilling, waiting, short }: GroupOf): number {
  if (prefilling || short) return 1;
  const rounds = left.map((tokens) => Math.ceil(tokens / (numSteps + 1)));
  return Math.max(1, waiting ? Math.min(...rounds) : Math.max(...rounds));
}

/** Chooses the number of rounds in a group. */
export interface SyncInterval {
  pick(batch: number, tier: DraftShape, ahead?: AheadOf): number;
  /** Takes note of a group of `count` rounds whose results were there at `ended`, milliseconds. */
  learn(batch: number, tier: DraftShape, group: { count: number; ended: number }): void;
  /** Called when something else runs before the next group: the time between is not that of rounds. */
  pause(): void;
}

/**
 * Sums over the groups of a batch and tier. A group's time is from the end of the one before to its own end; older
 * groups weigh less.
 */
interface Seen {
  /** Sum of the weights of all groups: sum of w. */
  readonly weight: number;
  /** Sums of w * rounds, and of w * rounds^2. */
  readonly rounds: number;
  readonly squares: number;
  /** Sums of w * ms, and of w * ms * rounds. */
  readonly ms: number;
  readonly products: number;
  /** The host's part of a group, known once there were groups of different sizes. */
  readonly hostMs?: number | undefined;
}

const NOTHING: Seen = { weight: 0, rounds: 0, squares: 0, ms: 0, products: 0 };

function key(batch: number, tier: DraftShape): string {
  return `${batch} ${tierText(tier)}`;
}

/** The latest times of a batch and tier whose host and round parts are both known; used for others until theirs are. */
interface Usual extends GroupTimes {
  /** Verify rows of its rounds, batch times tier. */
  readonly rows: number;
}

/**
 * Always picks the rounds that were asked for, or with "auto" what groups of different sizes show for each batch and
 * tier: n rounds take host + n round, a line fitted through the groups by least squares. The host's part cannot be
 * measured directly, because most of it is spent waiting for a device that is slow to begin and to report its end. If
 * all groups of a batch and tier had the same size, the host's part found last for another one is used. A round of a
 * batch and tier that was not seen is taken to last as long as that one's, or longer in proportion to the rows if it
 * has more: otherwise a policy that changes the tier would wait for the host again at each change.
 */
export function openSyncInterval(asked: RoundsPerSync): SyncInterval {
  const known = new Map<string, Seen>();
  let last: number | undefined;
  let usual: Usual | undefined;

  function timesOf(batch: number, tier: DraftShape): GroupTimes | undefined {
    const seen = known.get(key(batch, tier));
    const hostMs = seen?.hostMs ?? usual?.hostMs;
    if (hostMs === undefined) return undefined;
    if (seen) return { hostMs, roundMs: roundMsOf(seen, hostMs) };
    const { roundMs, rows } = usual as Usual;
    return { hostMs, roundMs: roundMs * Math.max(1, batch * tier.rows / rows) };
  }

  return {
    pick(batch, tier, ahead = {}) {
      if (asked !== "auto") return asked;
      const times = timesOf(batch, tier);
      const seen = known.get(key(batch, tier));
      // The host's part is a difference of times, too inexact for very short rounds: a group may always last UNSEEN_MS.
      const each = seen ? seen.ms / seen.rounds : Infinity;
      const { longestMs = Infinity } = ahead;
      const trial = seen === undefined || 2 * each > longestMs ? 1 : 2;
      const worth = times ? roundsWorth(times, ahead) : trial;
      const unseenMs = Math.min(UNSEEN_MS, longestMs);
      const unseen = ahead.gain ? 1 : Math.min(FEW_ROUNDS, Math.floor(unseenMs / each));
      return Math.max(worth, unseen);
    },
    learn(batch, tier, { count, ended }) {
      const before = last;
      last = ended;
      if (before === undefined) return;
      const seen = withGroup(known.get(key(batch, tier)) ?? NOTHING, count, ended - before);
      known.set(key(batch, tier), seen);
      const { hostMs } = seen;
      if (hostMs === undefined) return;
      usual = { hostMs, roundMs: roundMsOf(seen, hostMs), rows: batch * tier.rows };
    },
    pause: () => void (last = undefined),
  };
}

/** The sums with one more group, of `count` rounds that took `ms`. */
function withGroup(seen: Seen, count: number, ms: number): Seen {
  const all = {
    weight: OLDER * seen.weight + 1,
    rounds: OLDER * seen.rounds + count,
    squares: OLDER * seen.squares + count * count,
    ms: OLDER * seen.ms + ms,
    products: OLDER * seen.products + count * ms,
  };
  const mean = all.rounds / all.weight;
  const variance = all.squares / all.weight - mean ** 2;
  if (variance < (SPREAD * mean) ** 2) return { ...all, hostMs: seen.hostMs };
  const slope = (all.products / all.weight - mean * all.ms / all.weight) / variance;
  const each = all.ms / all.rounds;
  return { ...all, hostMs: (each - Math.max(each / 2, Math.min(each, slope))) * mean };
}

/**
 * Milliseconds of a round if the host takes `hostMs` of each group; at least half of the groups' time is the rounds'.
 */
function roundMsOf({ weight, rounds, ms }: Seen, hostMs: number): number {
  return Math.max((ms - weight * hostMs) / rounds, ms / rounds / 2);
}
