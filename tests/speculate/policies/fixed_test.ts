import assert from "node:assert/strict";
import { fixed } from "../../../src/speculate/policies/fixed.ts";
import { policyContract } from "../policy_contract.ts";

for (const numSteps of [0, 3]) policyContract(`fixed(${numSteps})`, () => fixed(numSteps));

Deno.test("fixed policy: one tier, whatever the batch", () => {
  const policy = fixed(3);
  assert.deepEqual(policy.tiers, [3]);
  assert.equal(policy.pick(policy.start, { batchSize: 64 }), 3);
});
