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
  /** Options as a user may write them; the contract suite runs the policy with each. */
  readonly examples: readonly unknown[];
  /** Its policies go by costs, whatever their options: see `Policy.costs`. */
  readonly costs?: true;
  /** Reads options as a user wrote them. @throws PolicyError when they cannot be used. */
  check(given: unknown): Options;
  make(options: Options, setup: PolicySetup): Policy<State>;
}

/** Adds what follows from the rest. */
export function policyKind<Options, State>(kind: KindOf<Options, State>): PolicyKind<Options> {
  const own = kind.costs ? { costs: true as const } : {};
  return { ...kind, open: (given, setup) => ({ ...kind.make(kind.check(given), setup), ...own }) };
}
