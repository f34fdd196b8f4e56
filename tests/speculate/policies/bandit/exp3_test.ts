import assert from "node:assert/strict";
import { EXP3 } from "../../../../src/speculate/policies/bandit/exp3.ts";
import { after, depthOf, drawing, opened } from "./trials.ts";

/** The share of uniform numbers at which each of the depths is drawn. */
function chances(
  steps: readonly number[],
  rounds: readonly [number, number][],
  hold = 1,
): number[] {
  const parts = 2000;
  const found = Array.from({ length: parts }, (_, i) => {
    const policy = opened(EXP3, { steps, hold }, drawing((i + 0.5) / parts));
    return depthOf(policy, after(policy, rounds));
  });
  return steps.map((depth) => found.filter((each) => each === depth).length / parts);
}

function near(found: readonly number[], wanted: readonly number[]): void {
  for (const [i, each] of found.entries()) {
    assert(Math.abs(each - (wanted[i] ?? NaN)) < 0.002, `${found} for ${wanted}`);
  }
}

Deno.test("exp3 policy: every arm alike at first", () => {
  near(chances([0, 1, 3, 5], []), [0.25, 0.25, 0.25, 0.25]);
});

Deno.test("exp3 policy: a loss counts over the chance that its arm had", () => {
  // Round 1 is the largest so far, no loss. Round 2: 1 - 1/2 over a chance of 1/2 is 1.
  const eta = Math.sqrt(Math.log(2) / (2 * 3));
  const second = Math.exp(-eta) / (1 + Math.exp(-eta));
  near(chances([0, 3], [[0, 2], [3, 1]]), [1 - second, second]);
});

Deno.test("exp3 policy: an epoch of several rounds is one loss, of all its time", () => {
  // 2 tokens in 0.5 + 1 ms, of 2 a ms at most: the loss is 1 - (4 / 3) / 2 over 1 / 2.
  const eta = Math.sqrt(Math.log(2) / (2 * 2));
  const weight = Math.exp(-eta * (1 - 2 / 3) * 2);
  near(chances([0, 3], [[3, 2], [3, 1]], 2), [1 / (1 + weight), weight / (1 + weight)]);
});

Deno.test("exp3 policy: draws what is better more and more", () => {
  const policy = opened(
    EXP3,
    { steps: [0, 3], hold: 1 },
    (round) => Math.imul(round, 0x9e3779b9) >>> 0,
  );
  let state = policy.start;
  const deep: number[] = [];
  for (let round = 0; round < 2000; round++) {
    const depth = depthOf(policy, state);
    deep.push(depth === 3 ? 1 : 0);
    state = after(policy, [[depth, depth === 3 ? 2 : 1]], { from: state });
  }
  const share = (from: number) =>
    deep.slice(from, from + 500).reduce((sum, each) => sum + each, 0) / 500;
  assert(share(0) > 0.6 && share(1500) > 0.95, `${share(0)} ${share(1500)}`);
});
