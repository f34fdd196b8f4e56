import { type TierShape, tierText } from "../../speculate/round_shape.ts";
import { MOST_ROUNDS } from "../device/submit.ts";

/** Share of the time that the device may wait for the host. */
export const SHARE = 0.02;
/** Milliseconds a group of rounds may last, so that text still flows. */
const LONGEST_MS = 50;
/** Milliseconds that nobody sees: a group may always last so long. */
const UNSEEN_MS = 2;
/** Rounds that a group may have however soon its sequences may end. */
const FEW_ROUNDS = 8;
/** Weight of the newest measurement in a moving average. */
const NEWEST = 0.25;

/** How many rounds to submit at once; "auto" decides by what host and device take. */
export type RoundsPerSync = number | "auto";

/** A group of n rounds takes host + n * round: submission, the wait for its end, the read; then each round. */
export interface GroupTimes {
  readonly hostMs: number;
  readonly roundMs: number;
}

/** What speaks against many rounds at once. */
export interface AheadOf {
  /** Rounds that asking the host's drafter one round sooner saves; default 0: it is not asked. */
  readonly gain?: number;
  /** Rounds until the last sequence ends, as far as one can tell; default: no more than a few. */
  readonly toCome?: number;
}

/**
 * The smallest n with host / (host + n round) at most SHARE, within MOST_ROUNDS and LONGEST_MS:
 *
 *     n = ceil(host / round * (1 - SHARE) / SHARE)
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
  { gain = 0, toCome = 0 }: AheadOf = {},
): number {
  const wanted = Math.ceil(hostMs / roundMs * (1 - SHARE) / SHARE);
  const flowing = Math.floor(LONGEST_MS / roundMs);
  const soon = gain > 0 ? Math.floor(Math.sqrt(2 * hostMs / (gain * roundMs))) : Infinity;
  const lasting = Math.max(FEW_ROUNDS, Math.floor(Math.sqrt(2 * hostMs * toCome / roundMs)));
  return Math.max(1, Math.min(wanted, flowing, soon, lasting, MOST_ROUNDS));
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
 * Rounds that the longest of these texts goes on for: as many tokens as it has, where a token may
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
 * one round; a waiting request may be, by an end of sequence within the group, for LONGEST_MS at
 * most.
 */
export function roundsUseful({ left, numSteps, prefilling, waiting, short }: GroupOf): number {
  if (prefilling || short) return 1;
  const rounds = left.map((tokens) => Math.ceil(tokens / (numSteps + 1)));
  return Math.max(1, waiting ? Math.min(...rounds) : Math.max(...rounds));
}

/** Chooses the number of rounds in a group. */
export interface SyncInterval {
  pick(batch: number, tier: TierShape, ahead?: AheadOf): number;
  /** Takes note of a group of `count` rounds whose results were there at `ended`, milliseconds. */
  learn(batch: number, tier: TierShape, group: { count: number; ended: number }): void;
  /** Something else runs before the next group: the time between says nothing of rounds. */
  pause(): void;
}

/** Moving averages from the end of a group to the end of the next. */
interface Seen {
  /** Of groups of one round. */
  readonly lone?: number;
  /** What each further round of a larger group added to that. */
  readonly further?: number;
  /** A round's part of any group, the host's with it. */
  readonly each?: number;
}

function key(batch: number, tier: TierShape): string {
  return `${batch} ${tierText(tier)}`;
}

/** Times of the batch and tier that both are known of, and what is taken for others' until they are. */
interface Usual extends GroupTimes {
  /** Verify rows of its rounds, batch times tier. */
  readonly rows: number;
}

/**
 * Always the rounds that were asked for, or what two kinds of groups show of each batch and tier: a
 * group of one takes host + round, each further round takes a round. The host's part cannot be seen
 * otherwise: most of it is spent waiting for a device that is slow to begin and to report its end. Of a
 * batch and tier that was not seen, or not both ways, the host's part is that of the one seen last, and
 * a round takes as long as its rounds, or in proportion to the rows where it has more: policies that
 * change the tier would wait for the host anew with each.
 */
export function openSyncInterval(asked: RoundsPerSync): SyncInterval {
  const known = new Map<string, Seen>();
  let last: number | undefined;
  let usual: Usual | undefined;

  function timesOf(batch: number, tier: TierShape): GroupTimes | undefined {
    const { lone, further } = known.get(key(batch, tier)) ?? {};
    if (lone !== undefined && further !== undefined) {
      return { hostMs: Math.max(0, lone - further), roundMs: further };
    }
    if (usual === undefined) return undefined;
    const { hostMs, roundMs, rows } = usual;
    if (further !== undefined) return { hostMs, roundMs: further };
    if (lone !== undefined) return { hostMs, roundMs: Math.max(lone - hostMs, lone / 2) };
    return { hostMs, roundMs: roundMs * Math.max(1, batch * tier.rows / rows) };
  }

  return {
    pick(batch, tier, ahead = {}) {
      if (asked !== "auto") return asked;
      const times = timesOf(batch, tier);
      const { lone, each = Infinity } = known.get(key(batch, tier)) ?? {};
      const worth = times ? roundsWorth(times, ahead) : lone === undefined ? 1 : 2;
      // What the host takes is known from differences: rounds this short are not left to that.
      const unseen = ahead.gain ? 1 : Math.min(FEW_ROUNDS, Math.floor(UNSEEN_MS / each));
      return Math.max(worth, unseen);
    },
    learn(batch, tier, { count, ended }) {
      const before = last;
      last = ended;
      if (before === undefined) return;
      const ms = ended - before;
      const seen = known.get(key(batch, tier)) ?? {};
      const each = mean(seen.each, ms / count);
      const own = { ...learned(seen, { ms, count, hostMs: usual?.hostMs }), each };
      known.set(key(batch, tier), own);
      const { lone, further } = own;
      if (lone === undefined || further === undefined) return;
      const rows = batch * tier.rows;
      usual = { hostMs: Math.max(0, lone - further), roundMs: further, rows };
    },
    pause: () => void (last = undefined),
  };
}

/** What a group of `count` rounds that took `ms` adds. */
function learned(
  seen: Seen,
  { ms, count, hostMs }: {
    readonly ms: number;
    readonly count: number;
    readonly hostMs: number | undefined;
  },
): Seen {
  if (count === 1) return { ...seen, lone: mean(seen.lone, ms) };
  const rest = seen.lone !== undefined
    ? (ms - seen.lone) / (count - 1)
    : hostMs !== undefined
    ? (ms - hostMs) / count
    : undefined;
  if (rest === undefined) return seen;
  return { ...seen, further: mean(seen.further, Math.max(rest, ms / count / 2)) };
}

function mean(old: number | undefined, newest: number): number {
  return old === undefined ? newest : old + NEWEST * (newest - old);
}
