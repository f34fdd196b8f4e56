import assert from "node:assert/strict";
import { policyRandom } from "../../../../src/speculate/noise.ts";
import { LIN_TS } from "../../../../src/speculate/policies/bandit/lin_ts.ts";
import { after, depthOf, drawing, opened } from "./trials.ts";

const OPTIONS = { steps: [0, 4], hold: 1, lambda: 1 };

/** Share of seeds at which the deeper arm is drawn after n rounds of each, at these rates. */
function deeper(n: number, [plain, deep]: readonly [number, number], spread: number): number {
  const rounds = Array.from({ length: n }, (): [number, number][] => [[0, plain], [4, deep]])
    .flat();
  const seeds = 2000;
  let count = 0;
  for (let seed = 0; seed < seeds; seed++) {
    const policy = opened(LIN_TS, { ...OPTIONS, spread }, policyRandom(seed));
    if (depthOf(policy, after(policy, rounds)) === 4) count++;
  }
  return count / seeds;
}

Deno.test("lin-ts policy: draws as the normal law has it", () => {
  // At batch 1 A = 1 + n and theta = n r / (1 + n): the difference of the two arms, by the largest
  // reward 2, is N(n / (1 + n) / 2, 2 spread^2 / (1 + n)). With n = 7 and spread 1 it is N(0.4375, 0.5^2).
  assert(Math.abs(deeper(7, [1, 2], 1) - 0.809) < 0.03, `${deeper(7, [1, 2], 1)}`);
  assert(Math.abs(deeper(7, [1, 1], 1) - 0.5) < 0.035);
});

Deno.test("lin-ts policy: without spread it is greedy, and with rounds it becomes so", () => {
  assert.equal(deeper(2, [1, 2], 0), 1);
  assert(deeper(200, [1, 2], 1) > 0.999);
});

Deno.test("lin-ts policy: uniform numbers at the ends are no trouble", () => {
  for (const uniform of [0, 1 - 2 ** -32]) {
    const policy = opened(LIN_TS, OPTIONS, drawing(...Array(16).fill(uniform)));
    const depth = depthOf(policy, after(policy, [[4, 1], [0, 1]]));
    assert(depth === 0 || depth === 4);
  }
});
