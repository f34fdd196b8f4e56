// Microseconds that a policy takes in each round (pick, holds and learn), by batch size.
//
//   deno run -A lab/policies.ts [--rounds N] [--options JSON] [NAME...]
//
// Rounds are played in groups of one, with a cost table, lags and eight rounds of history for each
// sequence; accepted drafts and times vary. Prints the mean of the rounds without the slowest hundredth,
// which other processes have interrupted, and the 99th percentile in brackets.
import process from "node:process";
import { parseArgs } from "node:util";
import { mean, quantileSorted } from "d3-array";
import { markdownTable } from "markdown-table";
import { hash32, policyRandom } from "../src/speculate/noise.ts";
import { POLICIES, policyNamed } from "../src/speculate/policies/registry.ts";
import type { Policy, RoundContext, RoundOutcome } from "../src/speculate/policy.ts";
import { contextOf, outcomeOf } from "../tests/speculate/rounds.ts";
import { WORLD_COSTS } from "../tests/speculate/world.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "20000" },
    options: { type: "string", default: "{}" },
  },
});

const BATCHES: Readonly<Record<string, (round: number) => number>> = {
  "batch 1": () => 1,
  "batch 32": () => 32,
  "batch 128": () => 128,
  "batch 1 to 128": (round) => 1 + round * 127 / (VARIED - 1) | 0,
};
/** Warm-up rounds: until then the policy's code is not compiled. */
const WARM = 2000;
const HISTORY = 8;
/** Contexts and outcomes that are made before the clock runs. */
const VARIED = 64;

const names = positionals.length > 0 ? positionals : Object.keys(POLICIES);
const options: unknown = JSON.parse(flags.options);
const rounds = Number(flags.rounds);

function contexts(sizes: (round: number) => number): RoundContext[] {
  return Array.from({ length: VARIED }, (_, round) => {
    const batchSize = sizes(round);
    return contextOf(batchSize, {
      costs: WORLD_COSTS,
      ranks: true,
      sequences: Array.from({ length: batchSize }, (_, id) => ({
        id,
        position: 100 + round,
        depth: 3,
        lag: round % 8 === 0 ? 20 : 0,
        accepted: Array.from({ length: HISTORY }, (_, i) => hash32(i, round, id) % 4),
        confidences: [0.9, 0.8, 0.7],
      })),
    });
  });
}

function outcome(batchSize: number, numSteps: number, round: number): RoundOutcome {
  const accepted = Array.from(
    { length: batchSize },
    (_, id) => hash32(1, round, id) % (numSteps + 1),
  );
  const ms = 1 + numSteps / 10 + hash32(2, round, 0) / 2 ** 33;
  return outcomeOf({
    batchSize,
    numSteps,
    accepted,
    ms: { round: ms, catchUp: 0 },
  });
}

/** Microseconds of each round, rising. */
function measure<State>(policy: Policy<State>, sizes: (round: number) => number): number[] {
  const known = contexts(sizes);
  const outcomes = new Map(policy.tiers.map(({ depth }) => [
    depth,
    Array.from({ length: VARIED }, (_, round) => outcome(sizes(round), depth, round)),
  ]));
  const times = new Float64Array(rounds);
  let state = policy.start;
  for (let round = -WARM; round < rounds; round++) {
    const at = (round + WARM) % VARIED;
    const context = known[at] as RoundContext;
    const began = performance.now();
    const { tier: { depth } } = policy.pick(state, context);
    policy.holds(state, context);
    const picked = performance.now();
    const told = outcomes.get(depth)?.[at] ?? outcome(sizes(at), depth, at);
    const learning = performance.now();
    state = policy.learn(state, told).state;
    if (round >= 0) times[round] = (performance.now() - learning + picked - began) * 1000;
  }
  return [...times.toSorted()];
}

const rows = names.map((name) => {
  const cells = Object.values(BATCHES).map((sizes) => {
    const setup = { buckets: [1, 2, 4, 8, 16, 32, 64, 128], random: policyRandom(1) };
    const times = measure(policyNamed(name, options, setup), sizes);
    return `${mean(times.slice(0, rounds * 0.99))?.toFixed(1)} (${
      quantileSorted(times, 0.99)?.toFixed(1)
    })`;
  });
  return [name, ...cells];
});
const head = ["µs a round, mean (p99)", ...Object.keys(BATCHES)];
process.stdout.write(`${markdownTable([head, ...rows], { align: ["l", "r", "r", "r", "r"] })}\n`);
