import assert from "node:assert/strict";
import { NIGHTJAR } from "../../../../src/speculate/policies/bandit/nightjar.ts";
import type { Policy, RoundContext } from "../../../../src/speculate/policy.ts";
import { contextOf } from "../../rounds.ts";
import { WORLD_COSTS } from "../../world.ts";
import { after, depthOf, drawing, opened } from "./trials.ts";

/** Explores in the first bin of each block only, there at the last of the likely arms. */
const GREEDY = drawing(0.9999, 0.999);
const COSTS = { costs: WORLD_COSTS };

function lagging(batchSize: number, lag: number): Partial<RoundContext> {
  const { sequences } = contextOf(batchSize);
  return { ...COSTS, sequences: sequences.map((sequence) => ({ ...sequence, lag })) };
}

Deno.test("nightjar policy: without a table every depth is tried first, rising", () => {
  const policy = opened(NIGHTJAR, { steps: [0, 2, 5], hold: 1, prior: 0 }, GREEDY);
  const found: number[] = [];
  let state = policy.start;
  for (let bin = 0; bin < 3; bin++) {
    found.push(depthOf(policy, state));
    const rounds = policy.holds(state, contextOf(1));
    const depth = found.at(-1) ?? 0;
    state = after(policy, Array(rounds).fill([depth, 1]), { from: state });
  }
  assert.deepEqual(found, [0, 2, 5]);
});

Deno.test("nightjar policy: the cost table says where to begin", () => {
  const at = (batchSize: number, alpha: number) => {
    const policy = opened(NIGHTJAR, { hold: 1, alpha }, GREEDY);
    return depthOf(policy, exploiting(policy, policy.start, batchSize), batchSize, COSTS);
  };
  assert.equal(at(16, 0.05), 0);
  assert.equal(at(1, 0.9), 7);
  assert(at(1, 0.5) > at(16, 0.5));
});

/** Plays rounds that cannot be measured, until the next bin is not the first of its block. */
function exploiting(policy: Policy, from: unknown, batchSize: number): unknown {
  let state = from;
  for (const rounds of [1, 1, 2]) {
    const depth = depthOf(policy, state, batchSize, COSTS);
    state = after(policy, Array(rounds).fill([depth, NaN]), { batchSize, from: state });
  }
  return state;
}

Deno.test("nightjar policy: rates are sums of tokens over sums of time", () => {
  const policy = opened(NIGHTJAR, { steps: [0, 3], hold: 1, prior: 0, discount: 1 }, GREEDY);
  // 3 steps: 2 tokens a ms once and 0.7 twice: mean 1.13, but 3 tokens in 3.4 ms.
  const state = after(policy, [[0, 1], [3, 2], [3, 0.7], [3, 0.7]]);
  assert.equal(depthOf(policy, state), 0);
});

Deno.test("nightjar policy: forgets what an arm once was", () => {
  const at = (discount: number) => {
    const policy = opened(NIGHTJAR, { steps: [0, 3], hold: 1, prior: 0, discount }, GREEDY);
    const old: [number, number][] = [[0, 1], [3, 3], [3, 3], [3, 3]];
    const later = after(policy, [...old, [3, 3], [3, 3]]);
    // Block 4: bins of two rounds; the first is bad, the second exploits.
    return depthOf(policy, after(policy, [[3, 0.7], [3, 0.7]], { from: later }));
  };
  assert.deepEqual([1, 0.5].map(at), [3, 0]);
});

Deno.test("nightjar policy: a prefill of what was missed is spread over the stay", () => {
  const at = (stay: number, lag: number) => {
    const policy = opened(NIGHTJAR, { steps: [0, 3], hold: 1, stay, alpha: 0.5 }, GREEDY);
    return depthOf(policy, exploiting(policy, policy.start, 4), 4, lagging(4, lag));
  };
  // 4 n(0.5, 3) = 7.5 tokens a round of 1.36 ms, against 4 of 1.1 ms. The prefill of 800 tokens takes
  // 1.8 ms, and the bin has two rounds.
  assert.equal(at(1, 0), 3);
  assert.equal(at(1, 200), 0);
  assert.equal(at(16, 200), 3);
});

Deno.test("nightjar policy: without a table the switch costs what prefills took", () => {
  const policy = opened(NIGHTJAR, { steps: [0, 3], hold: 1, stay: 1 }, GREEDY);
  const { costs: _, ...lag } = lagging(4, 100);
  const state = after(policy, [[0, 4], [3, 7], [3, 7], [3, 7]], { batchSize: 4 });
  assert.equal(depthOf(policy, state, 4, lag), 3, "none was seen");
  const dear = { round: 4 / 7, catchUp: 50 };
  const first = after(policy, [[0, 4], [3, 7], [3, 7]], { batchSize: 4 });
  const sequences = contextOf(4).sequences.map(({ id, position }) => (
    { id, position, asked: undefined, depth: 3, accepted: 0, confidences: [] }
  ));
  const tier = policy.tiers[1] as typeof policy.tiers[number];
  const { state: seen } = policy.learn(first, {
    tier,
    batchSize: 4,
    sequences,
    ms: dear,
  });
  assert.equal(depthOf(policy, seen, 4, lag), 0);
  assert.equal(depthOf(policy, seen, 4), 3, "nothing is missed");
});

Deno.test("nightjar policy: exploring prefers what is thought to be good, or does not", () => {
  const share = (focus: number, batchSize: number) => {
    const depths = Array.from({ length: 400 }, (_, i) => {
      const policy = opened(NIGHTJAR, { steps: [0, 7], focus }, drawing(0, (i + 0.5) / 400));
      return depthOf(policy, policy.start, batchSize, COSTS);
    });
    return depths.filter((depth) => depth === 7).length / 400;
  };
  assert.equal(share(0, 96), 0.5);
  assert(share(4, 96) < 0.1, `${share(4, 96)}`);
  assert(share(4, 1) > 0.9, `${share(4, 1)}`);
});

Deno.test("nightjar policy: an arm is kept for its bin", () => {
  const policy = opened(NIGHTJAR, { steps: [0, 3], hold: 2, max_bin: 3 }, GREEDY);
  const bins: number[] = [];
  let state = policy.start;
  for (let bin = 0; bin < 30; bin++) {
    const rounds = policy.holds(state, contextOf(1));
    bins.push(rounds);
    state = after(policy, Array(rounds).fill([depthOf(policy, state), 1]), { from: state });
  }
  // floor(sqrt(H)) is 1, 1, 2, 2, 4, ...: at least 2 and at most 3.
  assert.deepEqual(bins.slice(0, 8), [2, 2, 2, 2, 2, 2, 3, 3]);
  assert.equal(bins.at(-1), 3);
});
