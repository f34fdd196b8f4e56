import assert from "node:assert/strict";
import { policyRandom } from "../../../src/speculate/noise.ts";
import { HF_HEURISTIC } from "../../../src/speculate/policies/hf_heuristic.ts";
import type { SequenceContext } from "../../../src/speculate/policy.ts";
import { chain } from "../../../src/speculate/round_shape.ts";
import { contextOf } from "../rounds.ts";

const SETUP = { buckets: [1, 8], random: policyRandom(1) };

/** Of sequences that last ran with (depth, accepted). */
function pick(
  last: readonly (readonly [depth: number | undefined, accepted: number | undefined])[],
  { options = {}, asked = last.map(() => undefined) }: {
    readonly options?: unknown;
    readonly asked?: readonly (number | undefined)[];
  } = {},
) {
  const policy = HF_HEURISTIC.open(options, SETUP);
  const sequences: SequenceContext[] = last.map(([depth, accepted], id) => ({
    id,
    position: 9,
    depth,
    confidences: [],
    lag: 0,
    accepted: accepted === undefined ? [] : [1, accepted],
  }));
  return policy.pick(policy.start, contextOf(last.length, { sequences, asked }));
}

Deno.test("hf-heuristic policy: two more where all were accepted, else one fewer, from 1 up", () => {
  const table: [last: [number | undefined, number | undefined], next: number][] = [
    [[undefined, undefined], 5],
    [[3, 3], 5],
    [[3, 2], 2],
    [[3, 0], 2],
    [[1, 0], 1],
    [[1, 1], 3],
    [[5, 5], 7],
    [[7, 7], 7],
    [[4, undefined], 4],
    [[0, 0], 5],
    [[NaN, 2], 5],
    [[3, NaN], 3],
  ];
  for (const [last, next] of table) {
    const { tier, depths = [tier.depth] } = pick([last]);
    assert.deepEqual(depths, [next], `after ${last}`);
  }
});

Deno.test("hf-heuristic policy: each sequence has its own, in the shallowest tier that holds all", () => {
  assert.deepEqual(pick([[3, 3], [3, 2], [1, 0]]), { tier: chain(5), depths: [5, 2, 1] });
  assert.deepEqual(pick([[5, 4], [2, 0]]), { tier: chain(5), depths: [4, 1] });
  assert.deepEqual(pick([[3, 3], [3, 3]]), { tier: chain(5) }, "all of them in full");
});

Deno.test("hf-heuristic policy: options, and a request that asked for no drafts", () => {
  assert.deepEqual(pick([[undefined, undefined]], { options: { first: 2 } }), { tier: chain(2) });
  assert.deepEqual(pick([[4, 4]], { options: { steps: [2, 4] } }), { tier: chain(4) });
  assert.deepEqual(pick([[3, 3], [1, 1]], { asked: [0, undefined] }), {
    tier: chain(3),
    depths: [0, 3],
  });
  assert.throws(() => HF_HEURISTIC.check({ first: 0 }), {
    name: "PolicyError",
    message: "first must be an integer from 1 to 16, got 0",
  });
});
