import type { Policy, PolicySetup } from "../policy.ts";

/** A policy as it can be asked for. */
export interface PolicyKind<Options> extends KindOf<Options, unknown> {
  /**
   * The policy with options as a user wrote them.
   *
   * @throws PolicyError when they cannot be used.
   */
  open(given: unknown, setup: PolicySetup): Policy;
}

interface KindOf<Options, State> {
  /**
   * Options as a user may write them; the contract suite runs the policy with each. In the worlds of
   * `adapts` it runs with the first.
   */
  readonly examples: readonly unknown[];
  /** What adapting is worth; absent: ADAPTATION. False: it does not adapt. */
  readonly adapts?: false | WeakAdaptation;
  /** Its policies use costs with any options: see `Policy.costs`. */
  readonly costs?: true;
  /** Reads options as a user wrote them. @throws PolicyError when they cannot be used. */
  check(given: unknown): Options;
  make(options: Options, setup: PolicySetup): Policy<State>;
}

/**
 * The least tokens a millisecond that a policy has in the worlds of tests/speculate/adaptation_contract.ts,
 * as a share of what the best fixed depth of its tiers has there.
 */
export interface Adaptation {
  /** One batch size and acceptance all the time, the second half of the rounds. */
  readonly stationary: number;
  /** Acceptance high, low and high again. */
  readonly drift: number;
  /** Batches of 2 and of 96 in turn. */
  readonly bursty: number;
  /** From 500 rounds after the acceptance has become high, which long was so low that no draft paid. */
  readonly improved: number;
}

/** A policy that has less than ADAPTATION, by its nature. */
export interface WeakAdaptation extends Partial<Adaptation> {
  readonly why: string;
}

/** What a policy is expected to have. */
export const ADAPTATION: Adaptation = {
  stationary: 0.9,
  drift: 0.85,
  bursty: 0.85,
  improved: 0.6,
};

/** Adds what follows from the rest. */
export function policyKind<Options, State>(kind: KindOf<Options, State>): PolicyKind<Options> {
  const own = kind.costs ? { costs: true as const } : {};
  return { ...kind, open: (given, setup) => ({ ...kind.make(kind.check(given), setup), ...own }) };
}
