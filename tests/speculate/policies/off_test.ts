import assert from "node:assert/strict";
import { policyRandom } from "../../../src/speculate/noise.ts";
import { OFF } from "../../../src/speculate/policies/off.ts";
import { chain } from "../../../src/speculate/round_shape.ts";
import { contextOf } from "../rounds.ts";

Deno.test("off policy: plain decoding, whatever a request asks for", () => {
  const policy = OFF.open({}, { numSteps: 0, buckets: [1, 8], random: policyRandom(1) });
  const context = contextOf(3, { asked: [undefined, 5, 0] });
  assert.deepEqual(policy.pick(policy.start, context), { tier: chain(0) });
  assert.equal(policy.holds(policy.start, context), Infinity);
});

Deno.test("off policy: it has no option", () => {
  assert.throws(() => OFF.check({ steps: 0 }), { name: "PolicyError", message: /"steps"/ });
});
