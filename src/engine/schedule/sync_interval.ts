import { type DraftShape, tierText } from "../../speculate/round_shape.ts";
import { MOST_ROUNDS } from "../device/submit/submit.ts";

/** Share of the time that the device may wait for the host. */
export const SHARE = 0.02;
/** Milliseconds a group of rounds may last, so that text still flows. */
const LONGEST_MS = 50;
/**
 * The same while requests wait: the forward of their prompts comes between two groups, and those that decode wait for
 * both.
 */
const AWAITED_MS = 20;
/** Rounds of a group whose successor is begun before it ends take so many times what the host does. */
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

/** What speaks for and against many rounds at once. */
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
 * The smallest n with host / (host + n round) at most SHARE, within MOST_ROUNDS and LONGEST_MS, or AWAITED_MS, and
 * `longestMs`:
 *
 *     n = ceil(host / round * (1 - SHARE) / SHARE)
 *
 * Where the next group is begun while this one runs, the host's time is not seen as long as it is shorter:
 *
 *     n = ceil(MARGIN host / round)
 *
 * Sequences end within a group, in its middle on average: a text of L further rounds costs the host
 * L / n times and n / 2 rounds for nothing, the least together at
 *
 *     n = sqrt(2 host L / round)
 *
 * Where the host may draft between groups, a group of n rounds saves (n - 1) host and is expected to
 * lose gain * round for each round of delay, n (n - 1) / 2 of them; per round that is best at
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
  return Math.max(1, Math.min(hidden, flowing, soon, lasting, MOST_ROUNDS));
}

/** Tokens of which one knows nothing but that they have begun. */
const SOME_TOKENS = 16;

/** A text as it is when rounds are to follow. */
export interface TextSoFar {
  readonly tokens: number;
  /** Tokens that it may still get. */
  readonly left: number;
  /** Whether a token may end it before. */
  readonly ends: boolean;
}

/**
 * Rounds for which the longest of these texts continues: as many tokens as it has, where a token may
 * end it, and no more than it may get.
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
  /** They wait for pages: none is to be reserved ahead. */
  readonly short: boolean;
}

/**
 * Rounds that surely have something to do. A round gives at most num_steps + 1 tokens, so none is
 * wasted on a sequence with left tokens before round ceil(left / (num_steps + 1)). While others wait
 * for a place the sequence that may end first decides, else the one that may go on longest: what
 * ended earlier keeps its place in the batch meanwhile. A prompt is not kept waiting by more than
 * one round; a waiting request may be, by an end of sequence within the group, for AWAITED_MS at
 * most.
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

/** Groups of a batch and tier, from the end of one to the end of the next, the older the less they count. */
interface Seen {
  /** Sum of the weights of all groups: sum of w. */
  readonly weight: number;
  /** Sums of w * rounds, and of w * rounds^2. */
  readonly rounds: number;
  readonly squares: number;
  /** Sums of w * ms, and of w * ms * rounds. */
  readonly ms: number;
  readonly products: number;
  /** What the host takes of a group, once groups of different sizes have shown it. */
  readonly hostMs?: number | undefined;
}

const NOTHING: Seen = { weight: 0, rounds: 0, squares: 0, ms: 0, products: 0 };

function key(batch: number, tier: DraftShape): string {
  return `${batch} ${tierText(tier)}`;
}

/** Times of the batch and tier that both are known of, and what is taken for others' until they are. */
interface Usual extends GroupTimes {
  /** Verify rows of its rounds, batch times tier. */
  readonly rows: number;
}

/**
 * Always the rounds that were asked for, or what groups of different sizes show of each batch and tier:
 * n rounds take host + n round, a line that is laid through the groups by least squares. The host's part
 * cannot be seen otherwise: most of it is spent waiting for a device that is slow to begin and to report
 * its end. Of a batch and tier whose groups were all of a size it is that of the one seen last; a round
 * of one that was not seen takes as long as that one's, or in proportion to the rows where it has more:
 * policies that change the tier would wait for the host again with each.
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
      // The host's part is a difference: rounds this short are not left to that.
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

/** What groups show once there was one of `count` rounds that took `ms`. */
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

/** A round of groups of which the host takes so much; half of them at least are the rounds'. */
function roundMsOf({ weight, rounds, ms }: Seen, hostMs: number): number {
  return Math.max((ms - weight * hostMs) / rounds, ms / rounds / 2);
}
