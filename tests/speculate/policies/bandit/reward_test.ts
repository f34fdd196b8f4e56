import assert from "node:assert/strict";
import { rewardOf, wallRate } from "../../../../src/speculate/policies/bandit/reward.ts";
import { outcomeOf } from "../../rounds.ts";

const MS = { round: 4, catchUp: 1 };

function of(accepted: readonly number[], ms: Partial<typeof MS> = {}) {
  return rewardOf(outcomeOf({ batchSize: 3, numSteps: 3, accepted, ms: { ...MS, ...ms } }));
}

Deno.test("rewards: accepted drafts and one token of each sequence", () => {
  assert.deepEqual(of([0, 2, 3]), { tokens: 8, ms: 4, catchUp: 1 });
  assert.equal(wallRate({ tokens: 8, ms: 3, catchUp: 1 }), 2);
});

Deno.test("rewards: what cannot be is no reward", () => {
  for (const round of [NaN, Infinity, -Infinity, -1, 0, 1e308, 1e-300]) {
    assert.equal(of([1], { round }), undefined, `${round}`);
  }
  assert.equal(of([]), undefined);
  assert.equal(of([NaN, -1, 0.5, Infinity]), undefined);
  assert.deepEqual(of([NaN, 1, 9]), { tokens: 6, ms: 4, catchUp: 1 }, "9 of 3 are 3");
  for (const catchUp of [NaN, Infinity, -3]) {
    assert.deepEqual(of([1], { catchUp }), { tokens: 2, ms: 4, catchUp: 0 });
  }
});
