import { reason } from "../../errors.ts";
import { fixed } from "../../speculate/policies/static.ts";
import type {
  Decision,
  Policy,
  PolicyReport,
  PolicyUpdate,
  RoundContext,
  RoundOutcome,
  TierChange,
} from "../../speculate/policy.ts";
import {
  chain,
  type DraftShape,
  isChain,
  sameTier,
  tierText,
} from "../../speculate/round_shape.ts";

/** Chooses the drafts of each round and learns from what was accepted: a policy and its state. */
export interface Speculation {
  /** How the next round of `context.batchSize` requests is to draft. */
  pick(context: RoundContext): Decision;
  /**
   * For how many rounds the choice of `pick` may be used while `unlearned` earlier rounds (default 0) are not learned
   * yet: as many as `Policy.holds` returns, less the unlearned ones unless the policy may lag. 0: learn them first.
   */
  holds(context: RoundContext, unlearned?: number): number;
  /** Takes note of a round that was launched. */
  learn(outcome: RoundOutcome): void;
  readonly report: SpeculationReport;
}

/** How rounds are to be drafted. */
export interface SpeculationPlan {
  /** First tier of a request that does not set its number of steps. */
  readonly tier: DraftShape;
  /** Every tier that a round may have. */
  readonly tiers: readonly DraftShape[];
  /** Tiers whose programs are made at start; default: the first tier. */
  readonly warmed?: readonly DraftShape[];
  /** See `Policy`; default false. */
  readonly confident?: boolean;
  /** See `Policy`; default false. */
  readonly packed?: boolean;
  /** Whether it uses the costs of rounds. */
  readonly costs?: boolean;
  readonly speculation: Speculation;
}

/** What a policy did so far; the names are those of `--json`. */
export interface SpeculationReport {
  /** Its name. */
  readonly policy: string;
  /** Draft steps of the last round. */
  readonly active_num_steps: number;
  readonly rounds: number;
  /** Milliseconds of rounds by tier (`tierText`). */
  readonly tier_ms: Readonly<Record<string, number>>;
  /** The latest of `switch_count` changes. */
  readonly switches: readonly TierSwitch[];
  readonly switch_count: number;
  /** What the policy reports of itself. */
  readonly own: PolicyReport;
}

export interface TierSwitch extends TierChange {
  /** The round after which it happened, from 1. */
  readonly round: number;
}

/** Latest changes of the tier that are reported: the report is copied to other threads. */
const MAX_SWITCHES = 1000;

/** No drafts at all. */
export const NO_DRAFTS: Decision = { tier: chain(0) };

/**
 * Runs a policy, and limits what it chooses to the steps that requests ask for. If all ask for 0 steps, the policy is
 * not asked; in rounds that they share with others nothing is learned from requests that asked for 0: their draft may
 * lack keys and values, and they do not show what drafts are worth for the others.
 *
 * A policy that throws, or chooses what no round can have, is not asked again: a warning says so, and rounds continue
 * with `tier`.
 *
 * @param name the policy's, for the report.
 * @param otherwise.tier default: the policy's deepest.
 */
export function openSpeculation<State>(
  name: string,
  policy: Policy<State>,
  { tier: instead = policy.tiers.at(-1) ?? chain(0), onWarning = () => {} }: {
    readonly tier?: DraftShape;
    readonly onWarning?: (line: string) => void;
  } = {},
): Speculation {
  const switches: TierSwitch[] = [];
  const tierMs: Record<string, number> = {};
  let [rounds, changes] = [0, 0];
  let active = 0;
  let state = policy.start;
  /** What the policy threw. */
  let fault: string | undefined;
  const fallback = fixed(instead);

  /** What the policy says; what `otherwise` says once it has failed. */
  function asked<T>(ask: () => T, otherwise: () => T): T {
    if (fault !== undefined) return otherwise();
    try {
      return ask();
    } catch (error) {
      fault = reason(error);
      onWarning(
        `policy "${name}" failed and is not asked again, ` +
          `rounds go on with ${tierText(instead)} steps: ${fault}`,
      );
      return otherwise();
    }
  }

  function held(context: RoundContext, unlearned: number): number {
    const rounds = policy.holds(state, context);
    if (!(rounds >= 1)) throw new Error(`its choice is valid for ${rounds} rounds`);
    const lags = rounds === Infinity || policy.mayLag?.(state, context) === true;
    return lags ? rounds : Math.max(0, rounds - unlearned);
  }

  return {
    pick: (context) => (
      context.asked.some(drafts)
        ? asked(
          () => checked(policy.pick(state, context), policy, context),
          () => fallback.pick(null, context),
        )
        : NO_DRAFTS
    ),
    holds: (context, unlearned = 0) => (
      context.asked.some(drafts) ? asked(() => held(context, unlearned), () => Infinity) : Infinity
    ),
    learn(outcome) {
      const { tier, ms, sequences } = outcome;
      rounds++;
      active = tier.depth;
      const name = tierText(tier);
      tierMs[name] = (tierMs[name] ?? 0) + ms.round;
      const drafting = sequences.filter(({ asked }) => drafts(asked));
      // The policy chose nothing for this round, or every request that it chose for has ended.
      if (drafting.length === 0) return;
      const learned: PolicyUpdate<State> = asked(
        () => policy.learn(state, { ...outcome, sequences: drafting }),
        () => ({ state }),
      );
      state = learned.state;
      if (learned.change === undefined) return;
      changes++;
      switches.push({ round: rounds, ...learned.change });
      if (switches.length > MAX_SWITCHES) switches.shift();
    },
    get report(): SpeculationReport {
      const own = asked(() => policy.report(state), () => ({ json: {}, rows: [] }));
      const failed = fault === undefined ? own : failedReport(fault);
      return {
        policy: name,
        active_num_steps: active,
        rounds,
        tier_ms: tierMs,
        switches,
        switch_count: changes,
        own: failed,
      };
    },
  };
}

function failedReport(failed: string): PolicyReport {
  return { json: { failed }, rows: [["failed", failed]] };
}

/** Whether a request that asked for this number of steps is drafted for at all. */
function drafts(asked: number | undefined): boolean {
  return asked !== 0;
}

/**
 * Checks what the policy chose, and limits it to what the requests asked for.
 *
 * @throws Error for what no round can have: a bug of the policy.
 */
function checked(
  choice: Decision,
  { tiers }: Pick<Policy, "tiers">,
  context: RoundContext,
): Decision {
  const { tier, depths, verify } = choice;
  const { batchSize, asked } = context;
  const most = Math.max(...tiers.filter(isChain).map(({ depth }) => depth));
  const wanted = isChain(tier) && (asked.includes(tier.depth) || tier.depth <= most);
  if (!wanted && !tiers.some((one) => sameTier(one, tier))) {
    throw new Error(
      `it chose ${tierText(tier)} steps, its tiers are ${tiers.map(tierText).join(", ")}`,
    );
  }
  const wrong = depths && !fitDepths(choice, context)
    ? `depths ${depths}`
    : verify && !fitBudget(choice, context)
    ? `the budget ${JSON.stringify(verify)}`
    : undefined;
  if (wrong !== undefined) {
    throw new Error(`it gave ${wrong} to ${batchSize} sequences at ${JSON.stringify(tier)}`);
  }
  return limited(choice, context);
}

/**
 * The choice with at most the steps that the requests asked for. Where each request has its own depth or the device
 * decides, each is limited by its own number, otherwise the round by the largest.
 */
function limited(choice: Decision, { asked, batchSize }: RoundContext): Decision {
  const { depths, verify } = choice;
  const limits = asked.map((steps = Infinity) => steps);
  if (limits.every((limit) => limit >= choice.tier.depth)) return choice;
  const most = Math.max(...limits);
  const tier = most < choice.tier.depth ? chain(most) : choice.tier;
  const { depth } = tier;
  return {
    tier,
    ...(depths || verify) && {
      depths: limits.map((limit, i) => Math.min(limit, depths?.[i] ?? depth)),
    },
    ...verify && {
      verify: {
        ...verify,
        drafts: Math.min(verify.drafts, batchSize * depth),
        intercepts: verify.intercepts.slice(0, depth),
      },
    },
  };
}

function fitDepths({ tier, depths = [] }: Decision, { batchSize }: RoundContext): boolean {
  const fits = (depth: number) => Number.isInteger(depth) && depth >= 0 && depth <= tier.depth;
  return isChain(tier) && depths.length === batchSize && depths.every(fits);
}

function fitBudget(
  { tier, depths, verify }: Decision,
  { batchSize, ranks }: RoundContext,
): boolean {
  if (verify === undefined) return true;
  const { drafts, slope, intercepts, minConfidence } = verify;
  const whole = Number.isInteger(drafts) && drafts >= 0 && drafts <= batchSize * tier.depth;
  const finite = [slope, minConfidence, ...intercepts].every(Number.isFinite);
  const alone = depths === undefined && isChain(tier) && intercepts.length === tier.depth;
  return ranks && alone && whole && finite;
}
