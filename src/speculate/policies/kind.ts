import type { Policy, PolicySetup } from "../policy.ts";

/** A registered kind of policy, which is opened with a user's options. */
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
  /** The least adaptation that the policy must show in tests; absent: ADAPTATION. False: it does not adapt. */
  readonly adapts?: false | WeakAdaptation;
  /** Its policies use costs with any options: see `Policy.costs`. */
  readonly costs?: true;
  /** Reads options as a user wrote them. @throws PolicyError when they cannot be used. */
  check(given: unknown): Options;
  make(options: Options, setup: PolicySetup): Policy<State>;
}

/**
 * The least throughput that a policy must reach in the worlds of tests/speculate/adaptation_contract.ts, as a
 * share of the tokens a millisecond of the best fixed depth among its tiers.
 */
export interface Adaptation {
  /** One batch size and acceptance all the time, the second half of the rounds. */
  readonly stationary: number;
  /** Acceptance high, low and high again. */
  readonly drift: number;
  /** Batches of 2 and of 96 in turn. */
  readonly bursty: number;
  /** Acceptance was too low for drafts to pay for a long time; measured from 500 rounds after it became high. */
  readonly improved: number;
}

/** For a policy that by its nature reaches less than ADAPTATION. */
export interface WeakAdaptation extends Partial<Adaptation> {
  readonly why: string;
}

/** The default requirement. */
export const ADAPTATION: Adaptation = {
  stationary: 0.9,
  drift: 0.85,
  bursty: 0.85,
  improved: 0.6,
};

/** Completes a kind with `open`, which follows from its other members. */
export function policyKind<Options, State>(kind: KindOf<Options, State>): PolicyKind<Options> {
  const own = kind.costs ? { costs: true as const } : {};
  return { ...kind, open: (given, setup) => ({ ...kind.make(kind.check(given), setup), ...own }) };
}
