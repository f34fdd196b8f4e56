import assert from "node:assert/strict";
import { NIGHTJAR_PRINTED } from "../../../../src/speculate/policies/bandit/nightjar_printed.ts";
import type { Policy, PolicyRandom, RoundContext } from "../../../../src/speculate/policy.ts";
import { contextOf } from "../../rounds.ts";
import { WORLD_COSTS } from "../../world.ts";
import { after, depthOf } from "./trials.ts";

const STEPS = [0, 1, 4];

/** Uniform numbers: whether a bin explores, and which arm a round explores. */
function opened(bin: number, arm: (round: number) => number, steps = STEPS): Policy {
  const random: PolicyRandom = (counter, purpose) =>
    Math.floor((purpose % 2 === 0 ? bin : arm(counter)) * 2 ** 32);
  return NIGHTJAR_PRINTED.open({ steps }, { buckets: [1, 8], random });
}

/** Blocks 1 and 2 and a bin of block 3 explore; the next bin is its second. */
const EXPLORED: [number, number][] = [[1, 2], [1, 4], [0, 2], [0, 2]];

function lagging(lags: readonly number[]): Partial<RoundContext> {
  const { sequences } = contextOf(lags.length);
  return {
    costs: WORLD_COSTS,
    sequences: sequences.map((sequence, i) => ({ ...sequence, lag: lags[i] ?? 0 })),
  };
}

Deno.test("nightjar-printed policy: exploring bins draw in each round", () => {
  const policy = opened(0.5, (round) => round % 3 / 3 + 0.01);
  const found: number[] = [];
  let state = policy.start;
  for (let round = 0; round < 4; round++) {
    assert.equal(policy.holds(state, contextOf(1)), 1);
    found.push(depthOf(policy, state));
    state = after(policy, [[found.at(-1) ?? 0, 1]], { from: state });
  }
  assert.deepEqual(found, [0, 1, 4, 0]);
});

Deno.test("nightjar-printed policy: a bin explores with chance 1 / sqrt(b)", () => {
  const at = (uniform: number) => {
    const policy = opened(uniform, () => 0.99);
    return depthOf(policy, after(policy, EXPLORED));
  };
  // b = 2. Exploring draws 4 steps, which exploiting cannot: they have no round.
  assert.deepEqual([0.70, 0.71].map(at), [4, 1]);
});

Deno.test("nightjar-printed policy: goodput is the mean of rounds, and of equal arms the shallowest runs", () => {
  const policy = opened(0.999, () => 0);
  // 1 step: (2 + 4) / 2 = 3.
  const at = (plain: number) => (
    depthOf(policy, after(policy, [[1, 2], [1, 4], [0, plain], [0, plain]]))
  );
  assert.deepEqual([2.9, 3, 3.1].map(at), [1, 0, 0]);
});

Deno.test("nightjar-printed policy: arms without a round are infinitely slow, all of them alike", () => {
  const policy = opened(0.999, () => 0);
  const nothing = after(policy, [[4, NaN], [4, NaN], [4, NaN], [4, NaN]]);
  assert.equal(depthOf(policy, nothing), 0);
  assert.equal(
    depthOf(policy, after(policy, [[4, 1e-9], [4, NaN], [4, NaN], [4, NaN]])),
    0,
    "below measure",
  );
  assert.equal(depthOf(policy, after(policy, [[4, 0.01], [4, NaN], [4, NaN], [4, NaN]])), 4);
});

Deno.test("nightjar-printed policy: after a round without drafts they bear c_prefill / K", () => {
  const policy = opened(0.999, () => 0);
  // The last round had 0 steps. 1 step: 1/3 ms a token and c; 0 steps: 1/2; 4 steps: 1/2.5 and c/4.
  const state = after(policy, [[1, 3], [4, 2.5], [0, 2], [0, 2]]);
  const none = depthOf(policy, state, 1, lagging([0]));
  assert.equal(none, 1, "nothing was missed");
  // The table has 0.202 ms of one token: 0.333 + 0.202 > 0.5, but 0.4 + 0.05 < 0.5.
  assert.equal(depthOf(policy, state, 1, lagging([1])), 4);
  // 0.9 ms of 350 tokens.
  assert.equal(depthOf(policy, state, 1, lagging([350])), 0);
  assert.equal(depthOf(policy, state, 1, { ...lagging([350]), costs: undefined }), 1, "no table");
  const drafting = after(policy, [[0, 2], [4, 2.5], [1, 3], [1, 3]]);
  assert.equal(depthOf(policy, drafting, 1, lagging([350])), 1, "it drafted in the last round");
});

Deno.test("nightjar-printed policy: c_prefill is of the longest lag at every sequence", () => {
  const policy = opened(0.999, () => 0, [0, 1]);
  const state = after(policy, [[1, 3], [1, 3], [0, 2], [0, 2]], { batchSize: 3 });
  // 1/6 ms a token more would be even. 3 x 1 tokens 0.206 ms; the table's least is 0.202.
  assert.equal(depthOf(policy, state, 3, lagging([0, 0, 1])), 0);
  assert.equal(depthOf(policy, state, 3, lagging([0, 0, 0])), 1);
});

Deno.test("nightjar-printed policy: each batch size has its own bins and goodput", () => {
  const policy = opened(0.999, () => 0);
  const one = after(policy, EXPLORED);
  const state = after(policy, [[4, 8]], { batchSize: 2, from: one });
  assert.equal(depthOf(policy, state, 1), 1);
  assert.equal(depthOf(policy, state, 2), 0, "its second block explores, and draws 0");
  assert.deepEqual(policy.report(state).rows, [
    ["rounds", "to batch 1: 0 steps 2, 1 steps 2; to batch 2: 4 steps 1"],
  ]);
});
