import type { CostTable } from "./costs/table.ts";
import type { DraftShape } from "./round_shape.ts";

/**
 * Chooses how far each round drafts. A policy is pure: the engine keeps its state, so a recorded run can
 * be replayed through any policy. State, choices and reports are plain data. A policy that needs random
 * numbers calls `PolicySetup.random` with a count from its state, so a replay draws the same numbers.
 */
export interface Policy<State = unknown> {
  /** Tiers that `pick` returns for requests that do not set their steps, in rising depth. */
  readonly tiers: readonly DraftShape[];
  readonly start: State;
  /**
   * Whether it uses the confidences of drafts, or `Decision.verify`, which goes by them: only then does the engine let
   * the draft report them.
   */
  readonly confident?: boolean;
  /**
   * Whether `pick` returns `depths` or `verify`: packed rounds, which verify a part of the drafts, are then compiled at
   * start instead of at first use.
   */
  readonly packed?: boolean;
  /** Whether it uses `RoundContext.costs`: only then does the engine measure unknown costs. */
  readonly costs?: true;
  /** Decides how the next round drafts. */
  pick(state: State, context: RoundContext): Decision;
  /**
   * For how many rounds, the next one included, `pick` returns the same choice whatever their outcomes are:
   * 1 or more. The engine may launch that many rounds before it learns the first of them.
   */
  holds(state: State, context: RoundContext): number;
  /**
   * Whether `pick` may be called for the next group of rounds before the last group is learned, so that the device does
   * not wait for the host between them. A choice then lags by one group and is used for one group more than `holds`
   * says. Default: no; rounds in flight then count against the number that `holds` returns.
   */
  mayLag?(state: State, context: RoundContext): boolean;
  /** Updates the state by the result of a round. */
  learn(state: State, outcome: RoundOutcome): PolicyUpdate<State>;
  /** What `--json` and `--stats` report about the policy. */
  report(state: State): PolicyReport;
}

/** How the next round drafts and verifies. */
export interface Decision {
  readonly tier: DraftShape;
  /**
   * How many drafts of each sequence are verified, 0 to the tier's depth, [batchSize]; absent: all. For
   * chains only. The verify forward has rows for these drafts only.
   */
  readonly depths?: readonly number[];
  /** Lets the device choose the depths once the drafts exist. For chains only, and only if the context `ranks`. */
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
  /** Each chain is cut before the first draft whose confidence is below this; 0 cuts none. */
  readonly minConfidence: number;
}

export interface PolicyUpdate<State> {
  readonly state: State;
  /**
   * Absent if no batch changes its steps, and if changes are too many to list. Steps are those of requests that ask
   * for nothing in particular.
   */
  readonly change?: TierChange;
}

/** A change of the draft steps that batches run with from now on. */
export interface TierChange {
  readonly from: number;
  readonly to: number;
  /** The smallest batch that the change applies to, if batch sizes have settings of their own. */
  readonly slot?: number;
  /** A line that says why. */
  readonly reason: string;
}

/** What is known when a round is chosen. Sequences are as they were before any group whose results are not read yet. */
export interface RoundContext {
  /** Requests in the round. */
  readonly batchSize: number;
  /**
   * The most draft steps that each asked for, undefined where it leaves them to the policy: [batchSize]. A policy
   * chooses among the steps that these allow (asked_steps.ts), so that it learns the arm that it chose; the engine
   * limits any other choice.
   */
  readonly asked: readonly (number | undefined)[];
  /** [batchSize]. Built on first access, which must happen inside `pick` or `holds`. */
  readonly sequences: readonly SequenceContext[];
  /** How many rounds the last submission contained. */
  readonly roundsPerSync: number;
  /** The cost table of this machine; undefined if it was not measured. */
  readonly costs: CostTable | undefined;
  /** Whether the draft reports its confidence, which `Decision.verify` needs. */
  readonly ranks: boolean;
  /**
   * The most milliseconds that the round should take, so that neither the requests in it nor prompts that are being
   * stored wait longer; absent: no limit.
   */
  readonly maxMs?: number | undefined;
}

/** A sequence of the next round. */
export interface SequenceContext {
  /** Identifies the request across rounds. */
  readonly id: number;
  /** Tokens whose keys and values are stored: the position of the round's root. */
  readonly position: number;
  /** Draft steps of its last round; undefined before its first round. */
  readonly depth: number | undefined;
  /** Drafts accepted in its last rounds, at most RECENT_ROUNDS, the newest last. */
  readonly accepted: readonly number[];
  /** Tokens that the draft model has not prefilled yet; it catches up on them before it drafts again. */
  readonly lag: number;
}

/** The most rounds that `SequenceContext.accepted` covers. */
export const RECENT_ROUNDS = 8;

/** What a finished round reports. */
export interface RoundOutcome {
  /**
   * The tier that the round ran with. It may differ from what `pick` returns now: the round was launched before, or its
   * requests asked for fewer steps.
   */
  readonly tier: DraftShape;
  /** The number of requests that the round was launched for. */
  readonly batchSize: number;
  /** Rounds that were submitted at once, this one among them; absent: not known. */
  readonly roundsPerSync?: number;
  /**
   * Drafts that it verified over all requests, also those that had ended: the device gives their share to others.
   * Absent: those of `sequences`.
   */
  readonly drafts?: number;
  /** At most [batchSize]: without sequences that had ended and without those that must not be drafted for. */
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
  /** Confidences of its drafts, verified or not; empty if the draft does not report them. */
  readonly confidences: readonly number[];
  /** Position of the round's root. */
  readonly position: number;
}

/** Milliseconds. */
export interface RoundTimes {
  /** Wall time. It includes an equal share of the time that its group took beyond the device times. */
  readonly round: number;
  /**
   * Wall time of the draft's catch-up prefill, which runs before the first round that drafts again. It is
   * not part of `round`, and 0 for other rounds.
   */
  readonly catchUp: number;
}

/** What a policy reports about itself; the names are a public format. No number in it is NaN. */
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

/** What the engine passes to a policy's constructor. */
export interface PolicySetup {
  /** Draft steps to begin with, where they were asked for. */
  readonly numSteps?: number;
  /** Batch sizes that programs are made for, rising: a round is padded to the next. */
  readonly buckets: readonly number[];
  readonly random: PolicyRandom;
}

/**
 * A stateless random generator: 32 bits that depend only on a seed, a round and a purpose.
 *
 * @param round u32, a count that the policy keeps in its state.
 * @param purpose u32; what is drawn for two purposes of one round is independent.
 */
export type PolicyRandom = (round: number, purpose: number) => number;

/** A policy name or options that cannot be used. Callers show the message to the user as one line. */
export class PolicyError extends Error {
  override readonly name: string = "PolicyError";
}
