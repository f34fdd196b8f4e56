import assert from "node:assert/strict";
import { policyRandom } from "../../../../src/speculate/noise.ts";
import { ADA_BINGREEDY } from "../../../../src/speculate/policies/bandit/ada_bingreedy.ts";
import { contextOf } from "../../rounds.ts";
import { after, depthOf, drawing, opened } from "./trials.ts";

const STEPS = [0, 1, 3];
/** Five bins are over: the next is the second of block 4, of two rounds. */
const PLAYED: [number, number][] = [[0, 1], [1, 2], [3, 1], [3, 1.5], [0, 2.1], [0, 0.1], [1, 1], [
  1,
  1,
]];

Deno.test("ada-bingreedy policy: the first bin of a block explores, others by 1 / sqrt(b) or 1 / b", () => {
  const found = (exploration: string, explores: number) => {
    const policy = opened(ADA_BINGREEDY, { steps: STEPS, exploration }, drawing(explores, 0.999));
    const state = after(policy, PLAYED);
    assert.equal(depthOf(policy, policy.start), 3, "1 is more than any uniform number");
    return depthOf(policy, state);
  };
  // 1 / sqrt(2) = 0.707. The means are 1.067, 1.333 and 1.25.
  assert.deepEqual([0.7, 0.71].map((drawn) => found("inverse-sqrt", drawn)), [3, 1]);
  assert.deepEqual([0.49, 0.51].map((drawn) => found("inverse", drawn)), [3, 1]);
});

Deno.test("ada-bingreedy policy: exploring draws all arms alike", () => {
  const counts = new Map<number, number>();
  for (let seed = 0; seed < 3000; seed++) {
    const policy = opened(ADA_BINGREEDY, { steps: STEPS }, policyRandom(seed));
    const depth = depthOf(policy, policy.start);
    counts.set(depth, (counts.get(depth) ?? 0) + 1);
  }
  for (const depth of STEPS) {
    assert(Math.abs((counts.get(depth) ?? 0) - 1000) < 120, `${[...counts]}`);
  }
});

Deno.test("ada-bingreedy policy: a bin's rounds may be launched together", () => {
  const policy = opened(ADA_BINGREEDY, { steps: STEPS });
  const holds: number[] = [];
  let state = policy.start;
  while (holds.length < 12) {
    holds.push(policy.holds(state, contextOf(1)));
    state = after(policy, [[depthOf(policy, state), 1]], { from: state });
  }
  assert.deepEqual(holds, [1, 1, 2, 1, 2, 1, 2, 1, 2, 1, 4, 3]);
  const held = opened(ADA_BINGREEDY, { steps: STEPS, hold: 6 });
  assert.equal(held.holds(held.start, contextOf(1)), 6);
});
