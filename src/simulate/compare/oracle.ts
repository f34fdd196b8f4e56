import type { Choice, Policy, PolicyReport } from "../../speculate/policy.ts";
import { chain, chains } from "../../speculate/round_shape.ts";
import { type Pricing, totalMs } from "../costs/pricing.ts";
import type { SimulatedPolicy, SimulationView } from "../run/simulation.ts";
import type { SimulationResult } from "../run/tally.ts";

/** Depths that an oracle chooses among, rising; a pricing may have fewer. */
const DEPTHS: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7];

/** Numbers of drafts that are tried for a depth. */
const COUNTS = 64;

/** Rounds over which the oracle spreads the draft's catching up. */
const STAY = 20;

/** The depths of a machine, for static settings and oracles. */
export function depthsOf({ steps }: Pick<Pricing, "steps">): readonly number[] {
  return steps ?? DEPTHS;
}

/**
 * The dynamic oracle: it knows the chance of every draft of every request, and what rounds cost, and
 * takes the depth D and the N likeliest drafts with the most expected tokens a millisecond,
 *
 *     argmax over D, N of (b + the N largest s) / (ms(D, N) + catch-up / STAY)
 *
 * s_j = product of the chances up to draft j. It does not know which drafts are right. Rounds being
 * short beside what changes, no policy gets more in expectation, but for what it would save by not
 * catching up.
 *
 * @param whole N = all: depths alone, as a policy that cannot rank drafts.
 */
export function oracle(
  pricing: Pricing,
  { whole = false }: { readonly whole?: boolean } = {},
): SimulatedPolicy {
  const name = whole ? "oracle:depth" : "oracle";
  // What was published of rates holds for whole chains.
  const ranks = !whole && pricing.steps === undefined;
  return { name, open: (view) => oraclePolicy(pricing, view, ranks) };
}

function oraclePolicy(pricing: Pricing, view: SimulationView, ranks: boolean): Policy<null> {
  const depths = depthsOf(pricing);
  return {
    tiers: chains(depths),
    start: null,
    pick(_, { sequences }) {
      const most = depths.at(-1) ?? 0;
      const survival = sequences.map(({ id }) => survivalOf(view, id, most));
      const lag = sequences.reduce((sum, each) => sum + each.lag, 0);
      const cells = sequences.reduce((sum, { position }) => sum + position, 0);
      const price = (steps: number, drafts: number) => {
        const batch = sequences.length;
        const shorter = drafts < batch * steps;
        const round = { batch, steps, drafts: shorter ? drafts : undefined, cells };
        return totalMs(pricing.round({ ...round, roundsPerSync: 1 })) +
          (steps > 0 ? pricing.catchUp(lag) / STAY : 0);
      };
      return bestChoice(survival, { depths, price, ranks });
    },
    holds: () => 1,
    learn: (state) => ({ state }),
    report: () => NOTHING,
  };
}

const NOTHING: PolicyReport = { json: {}, rows: [] };

/** Chances that the first 1, 2, ... drafts of a request are all accepted, if it drafts now. */
function survivalOf(view: SimulationView, id: number, most: number): number[] {
  const { acceptance, stored } = view.request(id);
  const { now } = view;
  let survives = 1;
  return Array.from({ length: most }, (_, step) => {
    survives *= acceptance.chance(stored + 1 + step, step, now);
    return survives;
  });
}

/** The choice with the most expected tokens a millisecond; of equal ones the shallowest. */
export function bestChoice(
  survival: readonly (readonly number[])[],
  { depths, price, ranks }: {
    readonly depths: readonly number[];
    /** Milliseconds of a round of `steps` levels that verifies `drafts` in all. */
    readonly price: (steps: number, drafts: number) => number;
    /** Whether chains may be cut; else all drafts of a depth are verified. */
    readonly ranks: boolean;
  },
): Choice {
  let best = { rate: -1, steps: 0, drafts: 0 };
  const batch = survival.length;
  for (const steps of depths) {
    const chances = Float64Array.from(survival.flatMap((chain) => chain.slice(0, steps)));
    if (ranks) chances.sort().reverse();
    let tokens = batch;
    const every = ranks ? Math.ceil(chances.length / COUNTS) : chances.length;
    for (let drafts = 0; drafts <= chances.length; drafts++) {
      if (drafts > 0) tokens += chances[drafts - 1] ?? 0;
      if (drafts < chances.length && (!ranks || drafts % every > 0)) continue;
      const rate = tokens / price(steps, drafts);
      if (rate > best.rate) best = { rate, steps, drafts };
    }
  }
  const { steps, drafts } = best;
  if (drafts === batch * steps) return { tier: chain(steps) };
  return { tier: chain(steps), depths: depthsFor(survival, { steps, drafts }) };
}

/** How many of the largest are each sequence's. */
function depthsFor(
  survival: readonly (readonly number[])[],
  { steps, drafts }: { readonly steps: number; readonly drafts: number },
): number[] {
  const all = survival.flatMap((chain, at) =>
    chain.slice(0, steps).map((chance, step) => ({ chance, step, at }))
  ).sort((a, b) => b.chance - a.chance || a.step - b.step || a.at - b.at);
  const depths: number[] = survival.map(() => 0);
  for (const { at } of all.slice(0, drafts)) depths[at] = (depths[at] ?? 0) + 1;
  return depths;
}

/**
 * The per-batch oracle: for every batch size the depth that was best there in hindsight, of the static
 * ones that ran in the same world. Sizes go together from one power of 2 to the next, so that each has
 * rounds enough.
 *
 * @param statics what the static depths came to.
 */
export function perBatchOracle(
  pricing: Pricing,
  statics: readonly Pick<SimulationResult, "depths">[],
): SimulatedPolicy {
  const best = bestByBatch(statics);
  const sizes = [...best.keys()];
  const depthAt = (batch: number) => {
    const size = groupOfBatch(batch);
    const nearest = sizes.toSorted((a, b) => Math.abs(a - size) - Math.abs(b - size))[0] ?? size;
    return best.get(nearest)?.depth ?? 0;
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
function bestByBatch(
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
