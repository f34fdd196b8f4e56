import { totalMs } from "../../speculate/costs/lookup.ts";
import type { Decision, Policy, PolicyReport, SequenceContext } from "../../speculate/policy.ts";
import { chain, chains } from "../../speculate/round_shape.ts";
import type { Pricing } from "../costs/pricing.ts";
import type { SimulatedPolicy, SimulationView } from "../run/simulation.ts";
import type { SimulationResult } from "../run/tally.ts";

/** Depths that an oracle chooses among, rising; a pricing may have fewer. */
const DEPTHS: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7];

/** Numbers of drafts that are tried for a depth. */
const COUNTS = 64;

/** The depths of a machine, for static settings and oracles. */
export function depthsOf({ steps }: Pick<Pricing, "steps">): readonly number[] {
  return steps ?? DEPTHS;
}

/**
 * The dynamic oracle: it knows the chance of every draft of every request, and what rounds cost, and
 * takes the depth D and the N likeliest drafts with the most expected tokens a millisecond,
 *
 *     argmax over D, N of (b + the N largest s) / ms(D, N)
 *
 * s_j = product of the chances up to draft j. It does not know which drafts are right. Leaving depth 0 costs
 * the draft's catch-up, so it switches drafting on or off only once the time that the switch would have saved
 * so far reaches the time of the catch-up.
 *
 * @param whole N = all: depths alone, as a policy that cannot rank drafts.
 */
export function oracle(
  pricing: Pricing,
  { whole = false }: { readonly whole?: boolean } = {},
): SimulatedPolicy {
  const name = whole ? "oracle:depth" : "oracle";
  // Published rates are for rounds that verify whole chains.
  const ranks = !whole && pricing.steps === undefined;
  return { name, open: (view) => oraclePolicy(pricing, view, ranks) };
}

/** The oracle reads the simulation itself, so unlike every other policy it may keep data outside its state. */
function oraclePolicy(pricing: Pricing, view: SimulationView, ranks: boolean): Policy<null> {
  const depths = depthsOf(pricing);
  const drafting = depths.filter((depth) => depth > 0);
  const canStop = depths.includes(0);
  let on = true;
  /** Milliseconds that the other setting (drafting on or off) would have saved since the last switch. */
  let forgone = 0;
  return {
    tiers: chains(depths),
    start: null,
    pick(_, { sequences }) {
      const batch = sequences.length;
      const survival = sequences.map((each) => survivalOf(view, each, depths.at(-1) ?? 0));
      const lag = sequences.reduce((sum, each) => sum + each.lag, 0);
      const cells = sequences.reduce((sum, { position }) => sum + position, 0);
      const price = (steps: number, verified: number) => {
        const drafts = verified < batch * steps ? verified : undefined;
        return totalMs(pricing.round({ batch, steps, drafts, cells, roundsPerSync: 1 }));
      };
      const drafted = best(survival, { depths: drafting, price, ranks });
      if (!canStop) return choiceOf(survival, drafted);
      const plainMs = price(0, 0);
      // Time that drafting saves against plain decoding of as many tokens.
      const saved = drafted.tokens / batch * plainMs - drafted.ms;
      forgone = Math.max(0, forgone + (on ? -saved : saved));
      if (forgone > 0 && forgone >= pricing.catchUp(Math.max(lag, batch))) {
        on = !on;
        forgone = 0;
      }
      return on ? choiceOf(survival, drafted) : { tier: chain(0) };
    },
    holds: () => 1,
    learn: (state) => ({ state }),
    report: () => NOTHING,
  };
}

const NOTHING: PolicyReport = { json: {}, rows: [] };

/** Chances that the first 1, 2, ... drafts of a request are all accepted, if it drafts now. */
function survivalOf(
  view: SimulationView,
  { id, position }: Pick<SequenceContext, "id" | "position">,
  most: number,
): number[] {
  const { acceptance } = view.request(id);
  const { now } = view;
  let survives = 1;
  return Array.from({ length: most }, (_, step) => {
    survives *= acceptance.chance(position + 1 + step, step, now);
    return survives;
  });
}

/** A possible round. */
export interface Candidate {
  readonly steps: number;
  /** Verified over all sequences. */
  readonly drafts: number;
  /** Expected of all sequences. */
  readonly tokens: number;
  readonly ms: number;
}

/**
 * The round with the most expected tokens a millisecond; of equal ones the shallowest.
 *
 * @param survival chances that the first 1, 2, ... drafts are all accepted, [sequences][depth].
 */
export function best(
  survival: readonly (readonly number[])[],
  { depths, price, ranks }: {
    readonly depths: readonly number[];
    /** Milliseconds of a round of `steps` levels that verifies `drafts` in all. */
    readonly price: (steps: number, drafts: number) => number;
    /** Whether chains may be cut; else all drafts of a depth are verified. */
    readonly ranks: boolean;
  },
): Candidate {
  let found: Candidate = { steps: 0, drafts: 0, tokens: 0, ms: Infinity };
  for (const steps of depths) {
    const chances = Float64Array.from(survival.flatMap((chain) => chain.slice(0, steps)));
    if (ranks) chances.sort().reverse();
    let tokens = survival.length;
    const every = ranks ? Math.max(1, Math.ceil(chances.length / COUNTS)) : Infinity;
    for (let drafts = 0; drafts <= chances.length; drafts++) {
      if (drafts > 0) tokens += chances[drafts - 1] ?? 0;
      if (drafts < chances.length && (drafts === 0 || drafts % every > 0)) continue;
      const ms = price(steps, drafts);
      if (tokens / ms > found.tokens / found.ms) found = { steps, drafts, tokens, ms };
    }
  }
  return found;
}

/** The decision for a candidate: it verifies the candidate's number of likeliest drafts. */
export function choiceOf(
  survival: readonly (readonly number[])[],
  { steps, drafts }: Pick<Candidate, "steps" | "drafts">,
): Decision {
  if (drafts === survival.length * steps) return { tier: chain(steps) };
  const all = survival.flatMap((chances, at) =>
    chances.slice(0, steps).map((chance, step) => ({ chance, step, at }))
  ).sort((a, b) => b.chance - a.chance || a.step - b.step || a.at - b.at);
  const depths: number[] = survival.map(() => 0);
  for (const { at } of all.slice(0, drafts)) depths[at] = (depths[at] ?? 0) + 1;
  return { tier: chain(steps), depths };
}

/**
 * The per-batch oracle: for each batch size it uses the static depth that was best in hindsight in the same
 * world. Batch sizes between two powers of 2 share a depth, so that each group has enough rounds.
 *
 * @param statics results of the static depths.
 */
export function perBatchOracle(
  pricing: Pricing,
  statics: readonly Pick<SimulationResult, "depths">[],
): SimulatedPolicy {
  const known = rankedByBatch(statics);
  const sizes = [...known.keys()];
  const depthAt = (batch: number) => {
    const size = groupOfBatch(batch);
    const nearest = sizes.toSorted((a, b) => Math.abs(a - size) - Math.abs(b - size))[0] ?? size;
    return known.get(nearest)?.depth ?? 0;
  };
  const policy: Policy<null> = {
    tiers: chains(depthsOf(pricing)),
    start: null,
    pick: (_, { batchSize }) => ({ tier: chain(depthAt(batchSize)) }),
    holds: () => Infinity,
    learn: (state) => ({ state }),
    report: () => NOTHING,
  };
  return { name: "oracle:batch", open: () => policy };
}

/** Exponent of the power of 2 that is next above. */
function groupOfBatch(batch: number): number {
  return Math.ceil(Math.log2(batch));
}

/** The depth with the most tokens a millisecond for each group of batch sizes. */
function rankedByBatch(
  statics: readonly Pick<SimulationResult, "depths">[],
): Map<number, { readonly depth: number; readonly rate: number }> {
  const best = new Map<number, { readonly depth: number; readonly rate: number }>();
  for (const { depths } of statics) {
    const groups = Map.groupBy(depths, ({ batch, depth }) => `${groupOfBatch(batch)} ${depth}`);
    for (const cells of groups.values()) {
      const [{ batch, depth } = { batch: 1, depth: 0 }] = cells;
      const tokens = cells.reduce((sum, cell) => sum + cell.tokens, 0);
      const rate = tokens / cells.reduce((sum, cell) => sum + cell.ms, 0);
      const group = groupOfBatch(batch);
      if (rate > (best.get(group)?.rate ?? 0)) best.set(group, { depth, rate });
    }
  }
  return best;
}
