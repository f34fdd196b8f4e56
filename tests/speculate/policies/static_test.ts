import assert from "node:assert/strict";
import { fixed } from "../../../src/speculate/policies/static.ts";
import { contextOf } from "../rounds.ts";
import { chain } from "../../../src/speculate/round_shape.ts";

Deno.test("static policy: one tier, whatever the batch", () => {
  const policy = fixed(chain(3));
  assert.deepEqual(policy.tiers, [chain(3)]);
  const context = contextOf(64);
  assert.deepEqual(policy.pick(policy.start, context), { tier: chain(3) });
  assert.equal(policy.holds(policy.start, context), Infinity);
});

Deno.test("static policy: a round is as deep as the deepest of its requests", () => {
  const policy = fixed(chain(3));
  const picks = [[undefined], [0, undefined], [5, undefined], [1, 0], [1, 2], [0], []]
    .map((asked) => policy.pick(policy.start, contextOf(asked.length, { asked })).tier.depth);
  assert.deepEqual(picks, [3, 3, 5, 1, 2, 0, 0]);
});
