import assert from "node:assert/strict";
import { LINUCB } from "../../../../src/speculate/policies/bandit/linucb.ts";
import { after, depthOf, opened } from "./trials.ts";

const OPTIONS = { steps: [0, 4], hold: 1, lambda: 0.01 };

/** Rounds of both arms at batches of 1, 4 and 16: drafts pay at the first two. */
function learned(options: object, times: number): { depth: (batch: number) => number } {
  const policy = opened(LINUCB, { ...OPTIONS, ...options });
  let state = policy.start;
  for (let i = 0; i < times; i++) {
    for (const [batchSize, plain, deep] of [[1, 1, 3], [4, 3.6, 7.2], [16, 12, 6]] as const) {
      state = after(policy, [[0, plain], [4, deep]], { batchSize, from: state });
    }
  }
  return { depth: (batch) => depthOf(policy, state, batch) };
}

Deno.test("linucb policy: learns where drafts pay, and of batches between", () => {
  const { depth } = learned({ bonus: 0 }, 20);
  assert.deepEqual([1, 2, 3, 4, 16].map(depth), [4, 4, 4, 4, 0]);
});

Deno.test("linucb policy: a batch far from those it knows is explored where the bonus is large", () => {
  const policy = opened(LINUCB, { ...OPTIONS, bonus: 2 });
  const many = Array<[number, number]>(50).fill([0, 5]);
  const state = after(policy, [[4, 1], ...many]);
  assert.equal(depthOf(policy, state), 4, "one round of it against fifty");
  const greedy = opened(LINUCB, { ...OPTIONS, bonus: 0 });
  assert.equal(depthOf(greedy, after(greedy, [[4, 1], ...many])), 0);
});

Deno.test("linucb policy: arms without a round come first", () => {
  const policy = opened(LINUCB, OPTIONS);
  assert.equal(depthOf(policy, policy.start), 4, "nearest to the default of 3 steps");
  assert.equal(depthOf(policy, after(policy, [[4, 100]])), 0);
});
