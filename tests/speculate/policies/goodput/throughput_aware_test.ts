import assert from "node:assert/strict";
import { policyRandom } from "../../../../src/speculate/noise.ts";
import { policyNamed } from "../../../../src/speculate/policies/registry.ts";
import type { Policy } from "../../../../src/speculate/policy.ts";
import { contextOf, outcomeOf } from "../../rounds.ts";
import { partOfBest, steady } from "./behaviour.ts";
import { BUCKETS, costsOf } from "./costs.ts";

function throughputAware(options?: unknown, numSteps?: number): Policy {
  const setup = { buckets: BUCKETS, random: policyRandom(1) };
  return policyNamed(
    "throughput-aware",
    options ?? {},
    numSteps === undefined ? setup : { ...setup, numSteps },
  );
}

/** The steps of rounds in which at most the given number of drafts of each request are accepted. */
function stepsOf(policy: Policy, rounds: number, accepted: readonly number[], row = 0.01) {
  const context = contextOf(accepted.length, { costs: costsOf({ row }) });
  const found: number[] = [];
  let state = policy.start;
  for (let round = 0; round < rounds; round++) {
    const numSteps = policy.pick(state, context).tier.depth;
    found.push(numSteps);
    const counts = accepted.map((count) => Math.min(count, numSteps));
    const outcome = { batchSize: accepted.length, numSteps, accepted: counts };
    state = policy.learn(state, outcomeOf(outcome)).state;
  }
  return { found, state };
}

Deno.test("throughput-aware policy: begins in the middle, decides when the windows are full", () => {
  const { found } = stepsOf(throughputAware(), 40, [9, 9]);
  assert.deepEqual(found.slice(0, 20), Array(20).fill(3));
  assert.equal(found[20], 7, "all are accepted, so the deeper ones are taken to be as well");
  assert.deepEqual(found.slice(20), Array(20).fill(7));
  assert.equal(
    throughputAware({}, 5).pick(throughputAware({}, 5).start, contextOf(1)).tier.depth,
    5,
  );
});

Deno.test("throughput-aware policy: the shares of a position are of all requests", () => {
  // Of two requests one is accepted whole and one not at all: p = 0.5, 0.5, 0.5.
  const { state } = stepsOf(throughputAware({ interval: 1000 }), 30, [3, 0]);
  assert.deepEqual(throughputAware().report(state).json.acceptance, [0.5, 0.5, 0.5]);
});

Deno.test("throughput-aware policy: deeper positions go on geometrically", () => {
  // p = 1, 0.5, 0.25 goes on with 0.125 and less; at 0.2 ms a step none of that pays.
  const policy = throughputAware({ window: 4, interval: 4 });
  const costs = costsOf({ row: 0.1 });
  let state = policy.start;
  for (let round = 0; round < 4; round++) {
    const outcome = outcomeOf({ batchSize: 4, numSteps: 3, accepted: [1, 1, 2, 3] });
    state = policy.learn(state, outcome).state;
  }
  const tokens = [1, 2, 2.5, 2.75, 2.75 + 0.125 + 0.0625];
  const rates = [0, 1, 2, 3, 5].map((depth, i) =>
    (tokens[i] ?? 0) / (1 + 0.1 * (4 * depth + 3) + 0.1 * depth)
  );
  const best = [0, 1, 2, 3, 5][rates.indexOf(Math.max(...rates))];
  assert.equal(policy.pick(state, contextOf(4, { costs })).tier.depth, best);
});

Deno.test("throughput-aware policy: with fewer steps it forgets the deeper positions", () => {
  const policy = throughputAware({ window: 5, interval: 5 });
  const { found, state } = stepsOf(policy, 40, [0, 0, 0, 0], 0.1);
  assert.equal(found.at(-1), 1);
  assert.deepEqual(policy.report(state).json.acceptance, [0]);
  const better = stepsOf({ ...policy, start: state }, 40, [9, 9, 9, 9], 0.001);
  assert(Math.max(...better.found) > 3, "a good first position says that all are good");
});

Deno.test("throughput-aware policy: has no 0 steps", () => {
  assert.throws(() => throughputAware({ steps: [0, 1] }), {
    message: 'Cannot use policy "throughput-aware": steps must be 1 or more: it has no 0 steps',
  });
});

Deno.test("throughput-aware policy: near the best depth where nothing changes", () => {
  const part = partOfBest(steady({ lasts: 3000 }), () => throughputAware());
  assert(part > 0.95, `${part}`);
});
