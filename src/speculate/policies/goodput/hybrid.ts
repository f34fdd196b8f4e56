import { allowedSteps } from "../../asked_steps.ts";
import {
  type Decision,
  type Policy,
  type PolicyReport,
  type RoundContext,
  type RoundOutcome,
} from "../../policy.ts";
import { chain, chains } from "../../round_shape.ts";
import { numberOf, readOptions, stepsOf } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import {
  followed,
  laterMs,
  LONGEST_WAIT,
  NO_PROBES,
  overdue,
  type ProbeSchedule,
  resting,
} from "./probe_schedule.ts";
import { type Evidence, faded, learnRound, noEvidence } from "./evidence.ts";
import { aged, decided, type DecisionInterval, intervalOf, MAX_ROUNDS } from "./interval.ts";
import { type Pricing, pricing, REFINED, type RoundPrices } from "./pricing.ts";
import { acceptanceReport } from "./report.ts";
import { candidates, choiceOf, type Option, optionsOf } from "./rounds.ts";

export interface HybridOptions {
  /** Depths to choose among. */
  readonly steps: readonly number[];
  /** Share by which another depth must promise to be better than the current one. */
  readonly stickiness: number;
  /** Share of the time without drafts that probes of drafting may cost. */
  readonly probeBudget: number;
}

/** The evidence about rounds, and whether and since when rounds draft. */
interface Known {
  readonly evidence: Evidence;
  readonly schedule: ProbeSchedule;
}

export interface HybridState extends DecisionInterval<Known> {
  /** Rounds by depth, [most steps + 1]. */
  readonly rounds: readonly number[];
}

export const HYBRID: PolicyKind<HybridOptions> = policyKind({
  costs: true,
  examples: [{}, { steps: [0, 1, 3] }, { steps: [2, 5], stickiness: 0, probe_budget: 0.2 }],
  check(given) {
    const options = readOptions(given, ["steps", "stickiness", "probe_budget"]);
    const { steps, stickiness, probe_budget } = options;
    return {
      steps: stepsOf(steps),
      stickiness: numberOf(stickiness, "stickiness", { absent: 0.02, min: 0, max: 1 }),
      probeBudget: numberOf(probe_budget, "probe_budget", { absent: 0.01, min: 0, max: 1 }),
    };
  },
  make: (options, { buckets, numSteps }) => hybrid(options, { buckets, numSteps }),
  adapts: {
    stationary: 0.89,
    why:
      "in a large batch of requests that never end, the catch-up of a probe takes a tenth of the time",
  },
});

/** The calibration takes a step after 100 rounds, or earlier after 128 tested drafts. */
const CALIBRATION = { rounds: 100, samples: 128, ridge: 1e-3, damping: 50 };
/** Each round without drafts multiplies the weight of acceptance counts by the first, down to the second at least. */
const REST_KEEP = 0.98;
const MIN_KEPT = 0.05;
/** Early probes may cost MIN_PART * `probe_budget` if none succeeds; EAGER * `probe_budget` is added if all do. */
const MIN_PART = 0.25;
const EAGER = 6;
/** Chains that a probe of drafting observes. */
const PROBE_CHAINS = 16;

/**
 * Depth by goodput, then the number of drafts verified by survival:
 *
 *     D = argmax over D of max over N of (B + sum of the N largest survivals) / ms(B, D, N)
 *
 * over the depths whose rounds take at most `RoundContext.maxMs`, with the draft's catch-up except for probes.
 */
function hybrid(
  options: HybridOptions,
  { buckets, numSteps }: {
    readonly buckets: readonly number[];
    readonly numSteps?: number | undefined;
  },
): Policy<HybridState> {
  const { steps } = options;
  const most = Math.max(...steps);
  const prices = pricing({ buckets, refine: REFINED });
  const begins = numSteps !== undefined && steps.includes(numSteps) ? numSteps : undefined;
  const pick = (known: Known, context: RoundContext): Decision =>
    known.evidence.rounds === 0 && begins !== undefined &&
      allowedSteps(steps, context.asked).includes(begins)
      ? { tier: chain(begins) }
      : choose(known, context, { options, prices });
  /** Whether the next rounds try drafts after a rest. */
  const probes = (known: Known, context: RoundContext) =>
    mayProbe(known) && pick(known, context).tier.depth > 0;
  const start: Known = { evidence: noEvidence(most), schedule: NO_PROBES };
  return {
    tiers: chains(steps),
    start: { ...decided(start), rounds: Array<number>(most + 1).fill(0) },
    confident: true,
    packed: true,
    pick: ({ known }, context) => pick(known, context),
    holds: ({ known, left }, context) =>
      probes(known, context) ? Math.min(left, probeRounds(context.batchSize)) : left,
    // The rounds after a probe depend on its result.
    mayLag: ({ known }, context) => !probes(known, context),
    learn(state, outcome) {
      const { tier: { depth }, batchSize, ms } = outcome;
      const live = learned(state.live, outcome, buckets);
      const isProbe = mayProbe(state.known) && depth > 0;
      // Plain rounds that were in flight when the probe was chosen have used up a part of the interval: the probe's
      // first round begins a whole one.
      const first = isProbe && resting(state.live.schedule) > 0;
      const interval = first ? Math.max(state.left, intervalOf(ms.round)) : state.left;
      const left = isProbe ? Math.min(interval, probeRounds(batchSize)) : interval;
      const rounds = state.rounds.map((count, steps) => steps === depth ? count + 1 : count);
      return { state: { ...aged({ ...state, left }, live, ms.round), rounds } };
    },
    report,
  };
}

/** Whether rounds have run without drafts for long enough that a probe is allowed. */
function mayProbe({ schedule }: Known): boolean {
  return resting(schedule) >= schedule.wait;
}

/** Rounds of a probe: enough for PROBE_CHAINS chains, at most MAX_ROUNDS. */
function probeRounds(batch: number): number {
  return Math.max(1, Math.min(MAX_ROUNDS, Math.ceil(PROBE_CHAINS / batch)));
}

function learned(
  { evidence, schedule }: Known,
  outcome: RoundOutcome,
  buckets: readonly number[],
): Known {
  const { tier: { depth: steps }, ms: { round: ms, catchUp: catchUpMs } } = outcome;
  const rested = steps > 0 ? resting(schedule) : 0;
  // Acceptance from before a long pause says less about the present.
  const old = rested > 0 ? faded(evidence, Math.max(MIN_KEPT, REST_KEEP ** rested)) : evidence;
  const next = learnRound(old, outcome, { calibration: CALIBRATION, buckets });
  const changed = next.changes > old.changes;
  return { evidence: next, schedule: followed(schedule, { steps, ms, catchUpMs, changed }) };
}

function choose(
  { evidence, schedule }: Known,
  context: RoundContext,
  { options, prices }: { readonly options: HybridOptions; readonly prices: Pricing },
): Decision {
  const steps = allowedSteps(options.steps, context.asked);
  const shallowest = steps[0] as number;
  if (context.batchSize === 0) return { tier: chain(shallowest) };
  const most = steps.at(-1) as number;
  const drafts = candidates(evidence, context, most);
  const priced = prices(context, evidence.timings);
  const { maxMs = Infinity } = context;
  const all = optionsOf(steps, drafts, priced).filter(({ ms }, i) => i === 0 || ms <= maxMs);
  const waits = ({ steps, ms }: Option) => steps > 0 ? priced.catchUp(0) + ms : ms;
  const best = bestOf(all.filter((one, i) => i === 0 || waits(one) <= maxMs), {
    schedule,
    priced,
    context,
    options,
  });
  if (best.steps > 0) return choiceOf(best, drafts, { evidence, context });
  // A probe may wait for the catch-up beyond `maxMs`: what the draft has missed only grows until there is one.
  const probe = probeOf(all, { schedule, priced, context, options });
  return { tier: chain(probe?.steps ?? best.steps) };
}

interface Weighing {
  readonly schedule: ProbeSchedule;
  readonly priced: RoundPrices;
  readonly context: RoundContext;
  readonly options: HybridOptions;
}

/**
 * The option with the most tokens a millisecond. An option that drafts is charged the draft's catch-up, spread
 * over the rounds that drafting usually lasts. An option without drafts is charged the catch-up that follows later.
 */
function bestOf(
  all: readonly Option[],
  { schedule, priced, options: { stickiness } }: Weighing,
): Option {
  const now = priced.catchUp(0) / schedule.stay;
  const later = laterMs(schedule);
  const drafting = (schedule.steps ?? 0) > 0;
  const worth = ({ steps, tokens, ms }: Option) => {
    const rate = tokens / (ms + (steps > 0 ? now : later));
    // `later` already makes stopping dearer, so 0 steps get the same stickiness as the current depth.
    const stays = steps === schedule.steps || drafting && steps === 0;
    return rate * (1 + priced.doubt(steps) + (stays ? stickiness : 0));
  };
  const [first, ...others] = all as [Option, ...Option[]];
  let best = first;
  let most = worth(first);
  for (const option of others) {
    const its = worth(option);
    if (its > most) [best, most] = [option, its];
  }
  return best;
}

/**
 * Chooses a probe. Rounds without drafts teach nothing about drafts, so a policy at 0 steps would stay there.
 * After a wait the best depth above 0 is tried if that costs at most a share of the time since the last try; every
 * draft of a probe is verified:
 *
 *     catch-up + rounds * (ms_D - tokens_D / rate_0)  <=  part * probe_budget * ms since the last try
 *
 * The part is smaller the fewer probes succeed, and 1 at least after LONGEST_WAIT rounds. The catch-up grows with the
 * rest. In a large batch it can grow faster than the right side, so that no wait would be long enough: once a probe is
 * overdue, it is left out of the sum.
 */
function probeOf(
  all: readonly Option[],
  { schedule, priced, context: { batchSize }, options: { probeBudget } }: Weighing,
): Option | undefined {
  const rested = resting(schedule);
  if (rested < schedule.wait || all[0]?.steps !== 0) return undefined;
  const [none, ...others] = all as [Option, ...Option[]];
  const best = others.reduce<Option | undefined>(
    (best, option) => best === undefined || rateOfAll(option) > rateOfAll(best) ? option : best,
    undefined,
  );
  if (best === undefined) return undefined;
  const loss = Math.max(0, best.whole - best.tokensOfAll / none.rate);
  const catchUp = rested < overdue(schedule) ? priced.catchUp(0) : 0;
  const cost = catchUp + probeRounds(batchSize) * loss;
  const part = Math.max(MIN_PART + EAGER * schedule.returns, rested < LONGEST_WAIT ? 0 : 1);
  const worth = probeBudget * part;
  return cost <= worth * schedule.restedMs ? best : undefined;
}

/** Tokens a millisecond of rounds that verify every draft. */
function rateOfAll({ tokensOfAll, whole }: Option): number {
  return tokensOfAll / whole;
}

function report({ live: { evidence, schedule }, rounds }: HybridState): PolicyReport {
  const known = acceptanceReport(evidence);
  const by = rounds.map((count, steps) => [String(steps), count] as const)
    .filter(([, count]) => count > 0);
  const text = by.map(([steps, count]) => `${count} of ${steps}`).join(", ");
  return {
    json: { ...known.json, probe_wait: schedule.wait, rounds: Object.fromEntries(by) },
    rows: [...known.rows, ["rounds", text || "none"]],
  };
}
