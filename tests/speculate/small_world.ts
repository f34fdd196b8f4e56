import { allocate } from "../../src/simulate/run/allocation.ts";
import { catchUpMs, roundMs } from "../../src/speculate/costs/lookup.ts";
import type { CostTable } from "../../src/speculate/costs/table.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import {
  type Decision,
  type Policy,
  RECENT_ROUNDS,
  type RoundContext,
  type RoundOutcome,
  type SequenceContext,
  type SequenceOutcome,
} from "../../src/speculate/policy.ts";
import type { DraftShape } from "../../src/speculate/round_shape.ts";

/**
 * Requests that are decoded for a while under a policy. It is a small version of src/simulate for tests of
 * one policy: without arrivals, memory and recorded runs, and with given batch sizes.
 */
export interface SmallWorld {
  readonly seed: number;
  /** The actual costs of rounds. */
  readonly costs: CostTable;
  /** The costs that the policy is told. */
  readonly told: CostTable | undefined;
  /** Milliseconds that the world lasts. */
  readonly lasts: number;
  /** Requests in a round at time `ms`. */
  batch(ms: number): number;
  /** Chance that a typical draft is accepted at time `ms`, if the drafts before it were accepted. */
  alpha(ms: number): number;
  /** Standard deviations of the chance's logit: between requests, and between tokens. */
  readonly requestSpread: number;
  readonly tokenSpread: number;
  /** Mean tokens of a request. */
  readonly length: number;
  /** Whether the draft tells its confidence, and the noise on the confidence's logit. */
  readonly ranks: boolean;
  readonly confidenceNoise: number;
  /** Relative noise of times. */
  readonly noise: number;
  /** The most rounds that are launched together. */
  readonly together: number;
}

/** The results of a run. */
export interface Run {
  readonly tokens: number;
  readonly ms: number;
  readonly rounds: number;
  /** Rounds by depth. */
  readonly depths: Readonly<Record<number, number>>;
  readonly switches: number;
}

interface Slot {
  id: number;
  position: number;
  left: number;
  lag: number;
  depth: number | undefined;
  accepted: number[];
  bias: number;
}

/** Decodes for as long as the world lasts. */
export function runWorld<State>(world: SmallWorld, policy: Policy<State>): Run {
  const random = drawer(world.seed);
  const place = placing(world, random);
  const slots: Slot[] = [];
  const depths: Record<number, number> = {};
  let state = policy.start;
  let [ms, tokens, rounds, switches, together] = [0, 0, 0, 0, 1];
  let last: number | undefined;
  while (ms < world.lasts) {
    const batch = world.batch(ms);
    while (slots.length < batch) slots.push(place());
    const running = slots.slice(0, batch);
    const context = contextFor(running, world, together);
    const choice = policy.pick(state, context);
    const { depth } = choice.tier;
    together = Math.max(1, Math.min(world.together, policy.holds(state, context)));
    const catchUp = depth > 0 ? caughtUp(running, world.costs) : 0;
    ms += catchUp;
    if (last !== undefined && depth !== last) switches++;
    last = depth;
    for (let n = 0; n < together; n++) {
      const round = { choice, world, random, ms, together, number: rounds++ };
      const outcome = runRound(running, round, n === 0 ? catchUp : 0);
      ms += outcome.ms.round;
      for (const { accepted } of outcome.sequences) tokens += accepted + 1;
      depths[depth] = (depths[depth] ?? 0) + 1;
      state = policy.learn(state, outcome).state;
    }
    for (const [i, slot] of running.entries()) if (slot.left <= 0) slots[i] = place();
  }
  return { tokens, ms, rounds, depths, switches };
}

/** New requests, each with its own number and difficulty. */
function placing({ length, requestSpread }: SmallWorld, random: Drawer): () => Slot {
  let next = 0;
  return () => {
    const id = next++;
    const left = 1 + Math.floor(-Math.log(1 - random.uniform(id, 0, 3)) * length);
    const bias = requestSpread * random.normal(id, 0, 4);
    const drafted = { lag: 0, depth: undefined, accepted: [] };
    return { id, position: 32, left, bias, ...drafted };
  };
}

/** Milliseconds that the draft needs to catch up on the tokens that it has missed. */
function caughtUp(running: readonly Slot[], costs: CostTable): number {
  const lag = running.reduce((sum, { lag }) => sum + lag, 0);
  for (const slot of running) slot.lag = 0;
  return catchUpMs(costs, lag);
}

function runRound(
  running: readonly Slot[],
  { choice, world, random, ms, together, number }: {
    readonly choice: Decision;
    readonly world: SmallWorld;
    readonly random: Drawer;
    readonly ms: number;
    readonly together: number;
    readonly number: number;
  },
  catchUp: number,
): RoundOutcome {
  const { tier } = choice;
  const cells = running.reduce((sum, { position }) => sum + position, 0);
  const chains = running.map((slot) => draft(slot, tier.depth, { world, random, ms }));
  const verified = verifiedOf(choice, chains);
  const drafts = verified.reduce((sum, each) => sum + each, 0);
  const batch = running.length;
  const priced = { batch, steps: tier.depth, drafts, cells, roundsPerSync: together };
  const noise = Math.max(0.2, 1 + world.noise * random.normal(number, 0, 5));
  const round = roundMs(world.costs, priced) * noise;
  const sequences = running.map((slot, i) => {
    const depth = verified[i] as number;
    return moveOn(slot, { depth, tier, chain: chains[i] as Drafted });
  });
  return { tier, batchSize: batch, sequences, ms: { round, catchUp } };
}

/** Appends the accepted drafts and one bonus token to the request. */
function moveOn(
  slot: Slot,
  { depth, tier, chain: { passes, confidences } }: {
    readonly depth: number;
    readonly tier: DraftShape;
    readonly chain: Drafted;
  },
): SequenceOutcome {
  const miss = passes.slice(0, depth).indexOf(false);
  const accepted = miss < 0 ? depth : miss;
  const { id, position } = slot;
  slot.position += accepted + 1;
  slot.left -= accepted + 1;
  slot.lag += tier.depth > 0 ? 0 : 1;
  slot.depth = depth;
  slot.accepted = [...slot.accepted, accepted].slice(-RECENT_ROUNDS);
  return { id, asked: undefined, depth, accepted, confidences, position };
}

interface Drafted {
  readonly passes: readonly boolean[];
  readonly confidences: readonly number[];
}

/** Drafts a chain. Whether a token is right depends on request and position alone (common random numbers). */
function draft(
  { id, position, bias }: Slot,
  depth: number,
  { world, random, ms }: { world: SmallWorld; random: Drawer; ms: number },
): Drafted {
  const passes: boolean[] = [];
  const confidences: number[] = [];
  const usual = world.alpha(ms);
  const base = Math.log(usual / (1 - usual)) + bias;
  for (let j = 1; j <= depth; j++) {
    const x = base + world.tokenSpread * random.normal(id, position + j, 1);
    passes.push(random.uniform(id, position + j, 2) < 1 / (1 + Math.exp(-x)));
    if (!world.ranks) continue;
    // Drafts are overconfident.
    const told = 1.3 * x + 0.4 + world.confidenceNoise * random.normal(id, position + j, 6);
    confidences.push(1 / (1 + Math.exp(-told)));
  }
  return { passes, confidences };
}

function contextFor(running: readonly Slot[], world: SmallWorld, together: number): RoundContext {
  return {
    batchSize: running.length,
    asked: running.map(() => undefined),
    sequences: running.map((
      { id, position, depth, accepted, lag },
    ): SequenceContext => (
      { id, position, depth, accepted, lag }
    )),
    roundsPerSync: together,
    costs: world.told,
    ranks: world.ranks,
  };
}

function verifiedOf(
  { tier, depths, verify }: Decision,
  chains: readonly Drafted[],
): readonly number[] {
  if (depths !== undefined) return depths;
  if (verify === undefined) return chains.map(() => tier.depth);
  return allocate(chains.map(({ confidences }) => confidences), verify);
}

interface Drawer {
  uniform(a: number, b: number, purpose: number): number;
  normal(a: number, b: number, purpose: number): number;
}

function drawer(seed: number): Drawer {
  const uniform = (a: number, b: number, purpose: number) =>
    (hash32(hash32(seed, a, purpose), b, purpose) + 0.5) / 2 ** 32;
  return {
    uniform,
    normal: (a, b, purpose) =>
      Math.sqrt(-2 * Math.log(uniform(a, b, purpose))) *
      Math.cos(2 * Math.PI * uniform(a, b, purpose + 100)),
  };
}
