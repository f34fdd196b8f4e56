import assert from "node:assert/strict";
import { policyRandom } from "../../../../src/speculate/noise.ts";
import { policyNamed } from "../../../../src/speculate/policies/registry.ts";
import type { Policy } from "../../../../src/speculate/policy.ts";
import { contextOf, outcomeOf } from "../../rounds.ts";
import { partOfBest, speed, steady } from "./behaviour.ts";
import { runWorld } from "../../small_world.ts";
import { BUCKETS, costsOf } from "./costs.ts";

// Policies that draft the same in every round and cut what is verified.

function open(name: string, options: unknown = {}): Policy {
  return policyNamed(name, options, { buckets: BUCKETS, random: policyRandom(1) });
}

/** The policy's state after rounds in which `accepted` drafts of each request's chain were accepted. */
function after(policy: Policy, accepted: readonly number[]): unknown {
  let state = policy.start;
  const batchSize = accepted.length;
  for (let round = 0; round < 40; round++) {
    const { tier: { depth: numSteps }, depths } = policy.pick(state, contextOf(batchSize));
    const outcome = outcomeOf({ batchSize, numSteps, accepted });
    const sequences = outcome.sequences.map((each, i) => {
      const depth = depths?.[i] ?? numSteps;
      return { ...each, depth, accepted: Math.min(depth, each.accepted) };
    });
    state = policy.learn(state, { ...outcome, sequences }).state;
  }
  return state;
}

Deno.test("tetris policy: the device verifies as many as the capacity, by plain confidence", () => {
  const policy = open("tetris", { num_steps: 5, capacity: 12 });
  const { tier, verify } = policy.pick(policy.start, contextOf(8, { ranks: true }));
  assert.equal(tier.depth, 5);
  assert.deepEqual(verify, {
    drafts: 12,
    slope: 1,
    intercepts: [0, 0, 0, 0, 0],
    minConfidence: 0,
  });
  const few = policy.pick(policy.start, contextOf(2, { ranks: true }));
  assert.deepEqual(few, { tier }, "there is room for all");
});

Deno.test("tetris policy: by history where the draft does not tell", () => {
  const policy = open("tetris", { num_steps: 4, capacity: 6 });
  const { depths } = policy.pick(after(policy, [4, 0, 1]), contextOf(3));
  assert.equal(depths?.reduce((sum, each) => sum + each, 0), 6);
  assert.equal(depths?.[0], 4);
  assert((depths?.[2] ?? 0) >= (depths?.[1] ?? 9));
});

Deno.test("p-min policy: the device ends chains before the first unsure draft", () => {
  const policy = open("p-min", { num_steps: 4, p_min: 0.6 });
  assert.deepEqual(policy.pick(policy.start, contextOf(3, { ranks: true })).verify, {
    drafts: 12,
    slope: 1,
    intercepts: [0, 0, 0, 0],
    minConfidence: 0.6,
  });
});

Deno.test("p-min policy: by history a chain keeps its first draft", () => {
  const policy = open("p-min", { num_steps: 4, p_min: 0.6 });
  assert.deepEqual(policy.pick(after(policy, [4, 0]), contextOf(2)).depths, [4, 1]);
});

Deno.test("adaptive-verify policy: all drafts where rows are free, few where they are dear", () => {
  const policy = open("adaptive-verify", { num_steps: 4 });
  const state = after(policy, [4, 4, 0, 0]);
  const at = (row: number) =>
    policy.pick(state, contextOf(4, { costs: costsOf({ row, level: 0.01 }) }));
  assert.deepEqual(at(0), { tier: { depth: 4, width: 1, rows: 5 } });
  const [a = 0, b = 0, c = 9, d = 9] = at(0.2).depths ?? [];
  assert(a >= 2 && b >= 2 && c <= 1 && d <= 1, `${at(0.2).depths}`);
  const none = at(50).depths ?? [];
  // One draft, so that the policy goes on learning, and a second one because the bucket of six rows has room for it.
  assert.equal(none.reduce((sum, each) => sum + each, 0), 2);
});

Deno.test("adaptive-verify policy: better than verifying all, where rows are dear", () => {
  const costs = costsOf({ row: 0.05, level: 0.02 });
  for (const ranks of [false, true]) {
    const world = steady({ costs, told: costs, ranks, batch: () => 32, tokenSpread: 1 });
    const all = open("static", { num_steps: 5 });
    const gain = speed(runWorld(world, open("adaptive-verify", { num_steps: 5 }))) /
      speed(runWorld(world, all));
    assert(gain > 1.1, `${gain}`);
  }
});

Deno.test("adaptive-verify policy: goes up again when drafts become better", () => {
  const costs = costsOf({ row: 0.05, level: 0.02 });
  for (const ranks of [false, true]) {
    const world = steady({ costs, told: costs, ranks, batch: () => 16, lasts: 6000 });
    const alpha = (ms: number) => ms < 1500 ? 0.1 : 0.95;
    const policy = open("adaptive-verify", { num_steps: 3 });
    const drafts: number[] = [];
    runWorld({ ...world, alpha }, {
      ...policy,
      learn(state, outcome) {
        const verified = outcome.sequences.reduce((sum, { depth }) => sum + depth, 0);
        drafts.push(verified / outcome.batchSize);
        return policy.learn(state, outcome);
      },
    });
    assert((drafts.at(-1) ?? 0) > 2, `${drafts.at(-1)}`);
    assert(Math.min(...drafts) < 1, `${Math.min(...drafts)}`);
  }
});

Deno.test("ema-censored policy: a chain accepted whole asks for one deeper, another does not", () => {
  const policy = open("ema-censored", { steps: [1, 2, 3, 4, 5, 7] });
  const steps = (accepted: (numSteps: number) => number) => {
    let state = policy.start;
    const found: number[] = [];
    for (let round = 0; round < 200; round++) {
      const numSteps = policy.pick(state, contextOf(1)).tier.depth;
      found.push(numSteps);
      const outcome = outcomeOf({ batchSize: 1, numSteps, accepted: [accepted(numSteps)] });
      state = policy.learn(state, outcome).state;
    }
    return [...new Set(found.slice(-50))].toSorted();
  };
  assert.equal(policy.pick(policy.start, contextOf(1)).tier.depth, 3);
  assert.deepEqual(steps((numSteps) => numSteps), [7]);
  assert.deepEqual(steps(() => 0), [1]);
  // If 2 of 2 drafts are accepted, more might be; if 2 of 3 are, the chain ends at 2.
  assert.deepEqual(steps((numSteps) => Math.min(2, numSteps)), [2, 3]);
});

Deno.test("ema-censored policy: tells its changes, and refuses 0 steps", () => {
  const policy = open("ema-censored", { steps: [1, 3], alpha: 1 });
  let state = policy.start;
  const changes: unknown[] = [];
  for (let round = 0; round < 8; round++) {
    const next = policy.learn(state, outcomeOf({ batchSize: 1, numSteps: 3, accepted: [1] }));
    if (next.change) changes.push(next.change);
    state = next.state;
  }
  assert.deepEqual(changes, [{ from: 3, to: 1, reason: "steps 3 -> 1 (ema 1.00)" }]);
  assert.throws(() => open("ema-censored", { steps: 0 }), /0 steps teach nothing/);
});

Deno.test("cuts: near the best depth at batch 1 where rows are nearly free", () => {
  const world = steady({ batch: () => 1, costs: costsOf({ row: 0.001, level: 0.02 }) });
  for (const name of ["adaptive-verify", "tetris"]) {
    const part = partOfBest({ ...world, told: world.costs }, () => open(name));
    assert(part > 0.97, `${name}: ${part}`);
  }
});
