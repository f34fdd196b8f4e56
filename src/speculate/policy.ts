import type { CostTable } from "./costs/table.ts";
import type { DraftShape } from "./round_shape.ts";

/**
 * Chooses how far each round drafts. Pure: the engine keeps the state, and a recorded run can be
 * played again through any policy. State, choices and reports are plain data; what a policy draws
 * by chance it draws from `PolicySetup.random` with a number of its state, so it draws it again.
 */
export interface Policy<State = unknown> {
  /** Tiers that `pick` returns for requests that do not set their steps, in rising depth. */
  readonly tiers: readonly DraftShape[];
  readonly start: State;
  /** Whether it uses contexts that `rank`: only then does the engine have the draft tell its confidence. */
  readonly confident?: boolean;
  /**
   * Whether it gives depths or budgets: rounds that verify a part of the drafts are then prepared at start,
   * others when first wanted. Default: as `confident`.
   */
  readonly packs?: boolean;
  /** Whether it uses `RoundContext.costs`: only then does the engine measure unknown costs. */
  readonly costs?: true;
  /** How the next round is to draft. */
  pick(state: State, context: RoundContext): Decision;
  /**
   * How many rounds `pick` surely gives the same choice, the next one included and whatever they come
   * to: 1 or more. So many may be launched before the first of them is learned.
   */
  holds(state: State, context: RoundContext): number;
  /**
   * Whether `pick` may also be asked for a group of rounds before the last one is learned, so that no device waits for
   * the host between the two: choices are then older by a group, and each is used for a group more than `holds` says.
   * Default: no; rounds that are not learned yet count as some of those that `holds` promises.
   */
  mayLag?(state: State, context: RoundContext): boolean;
  /** Updates the state by the result of a round. */
  learn(state: State, outcome: RoundOutcome): PolicyUpdate<State>;
  /** What `--json` and `--stats` report of it. */
  report(state: State): PolicyReport;
}

/** A round to come. */
export interface Decision {
  readonly tier: DraftShape;
  /**
   * Drafts of each sequence that are verified, 0 to the tier's depth, [batchSize]; absent: all. For
   * chains only. The verify forward has rows for these drafts alone.
   */
  readonly depths?: readonly number[];
  /** Leaves the depths to the device, which has seen the drafts. For chains, where the context `ranks`. */
  readonly verify?: VerifyBudget;
}

/**
 * How the device chooses, after a chain of each sequence is drafted, which drafts are verified. The
 * draft's confidence at a position is the highest probability that its distribution has there. It
 * depends on the tokens before the position alone, and so do the numbers here: a choice by the
 * probability of the sampled token would change the law of what is accepted under rejection sampling.
 *
 * The chance that draft j of a sequence is reached and accepted is taken to be
 *
 *     s_j = product over k <= j of sigmoid(slope * logit(confidence_k) + intercepts[k])
 *
 * and the `drafts` largest of all sequences are verified; s falls with j, so they are prefixes.
 */
export interface VerifyBudget {
  /** Drafts verified over all sequences, 0 to batchSize times the tier's depth. */
  readonly drafts: number;
  readonly slope: number;
  /** By position, [depth]. */
  readonly intercepts: readonly number[];
  /** Chains end before the first draft whose confidence is below this; 0: none does. */
  readonly leastConfidence: number;
}

export interface PolicyUpdate<State> {
  readonly state: State;
  /** Absent if no batch changes its steps, and if changes are too many to list. */
  readonly change?: TierChange;
}

/** From now on batches run with other steps. */
export interface TierChange {
  readonly from: number;
  readonly to: number;
  /** The smallest batch that it is for, where batches have settings of their own. */
  readonly slot?: number;
  /** A line that says why. */
  readonly reason: string;
}

/** What is known when a round is chosen; of sequences what was known before a group that is still to be read. */
export interface RoundContext {
  /** Requests in the round. */
  readonly batchSize: number;
  /** Draft steps that each asked for, undefined where it leaves them to the policy: [batchSize]. */
  readonly asked: readonly (number | undefined)[];
  /** [batchSize]. Gathered when it is first read, which is to be within `pick` or `holds`. */
  readonly sequences: readonly SequenceContext[];
  /** Requests that wait for a place. */
  readonly waiting: number;
  /** KV pages of 16 tokens that no running request holds, cached ones among them. */
  readonly freePages: number;
  readonly totalPages: number;
  /** Rounds that were last submitted at once. */
  readonly roundsPerSync: number;
  /** What rounds cost here; undefined where it was not measured. */
  readonly costs: CostTable | undefined;
  /** Whether the draft reports its confidence, which `Decision.verify` needs. */
  readonly ranks: boolean;
  /** Milliseconds that the round should take at most, where requests must not wait longer; absent: any. */
  readonly mostMs?: number | undefined;
}

/** A sequence of the round to come. */
export interface SequenceContext {
  /** Says in later rounds that it is the same request. */
  readonly id: number;
  /** Tokens whose keys and values are stored: the position of the round's root. */
  readonly position: number;
  /** Draft steps it last ran with; undefined before its first round. */
  readonly depth: number | undefined;
  /** Drafts accepted in its last rounds, at most RECENT_ROUNDS, the newest last. */
  readonly accepted: readonly number[];
  /** Of the drafts of its last round, verified or not; empty where the draft does not tell. */
  readonly confidences: readonly number[];
  /** Tokens that the draft has missed; before it drafts again it catches up on them. */
  readonly lag: number;
}

/** Rounds that a `SequenceContext` describes. */
export const RECENT_ROUNDS = 8;

/** What a finished round reports. */
export interface RoundOutcome {
  /** It ran with this. Where `pick` gives another by now, it was launched before a change. */
  readonly tier: DraftShape;
  /** Requests that it was launched for. */
  readonly batchSize: number;
  /** Requests that waited for a place when it was over. */
  readonly waiting: number;
  /** Rounds that were submitted at once, this one among them; absent: not known. */
  readonly roundsPerSync?: number;
  /** At most [batchSize]: neither those that had ended nor those that are not to be drafted for. */
  readonly sequences: readonly SequenceOutcome[];
  readonly ms: RoundTimes;
}

export interface SequenceOutcome {
  /** As in the context. */
  readonly id: number;
  /** What it asked for. */
  readonly asked: number | undefined;
  /** Drafts verified for it. */
  readonly depth: number;
  /** Drafts accepted, the bonus not counted. */
  readonly accepted: number;
  /** Of its drafts, verified or not; empty where the draft does not tell. */
  readonly confidences: readonly number[];
  /** Of the round's root. */
  readonly position: number;
}

/** Milliseconds. `draft`, `verify`, `extend` and `host` are 0 where the device's time is not taken. */
export interface RoundTimes {
  /** Wall time, an equal part of what its group took beyond device times included. */
  readonly round: number;
  readonly draft: number;
  readonly verify: number;
  readonly extend: number;
  /** What is left of `round`. */
  readonly host: number;
  /**
   * Wall time of the draft's prefill of what it had missed, before the first round that drafts again;
   * no part of `round`, 0 for other rounds.
   */
  readonly catchUp: number;
}

/** What a policy reports of itself; its names are a public format. No number in it is NaN. */
export interface PolicyReport {
  /** Its part of the object of `--json`. */
  readonly json: Readonly<Record<string, Plain>>;
  /** Its lines of `--stats`: name and text. */
  readonly rows: readonly (readonly [name: string, text: string])[];
}

/** What JSON can hold. */
export type Plain =
  | string
  | number
  | boolean
  | null
  | readonly Plain[]
  | { readonly [key: string]: Plain };

/** What an engine gives a policy when it makes it. */
export interface PolicySetup {
  /** Draft steps to begin with, where they were asked for. */
  readonly numSteps?: number;
  /** Batch sizes that programs are made for, rising: a round is padded to the next. */
  readonly buckets: readonly number[];
  readonly random: PolicyRandom;
}

/**
 * Chance without state: 32 bits that depend on a seed, a round and a purpose alone.
 *
 * @param round u32, a count that the policy keeps in its state.
 * @param purpose u32; what is drawn for two purposes of one round is independent.
 */
export type PolicyRandom = (round: number, purpose: number) => number;

/** Options or a name that no policy can be made of. Callers turn it into a line for the user. */
export class PolicyError extends Error {
  override readonly name: string = "PolicyError";
}
