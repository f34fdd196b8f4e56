import assert from "node:assert/strict";
import { UCB } from "../../../../src/speculate/policies/bandit/ucb.ts";
import { after, depthOf, opened } from "./trials.ts";

const OPTIONS = { steps: [0, 2, 5], hold: 1 };

Deno.test("ucb policy: depths without a round come first, the one to begin with before all", () => {
  const policy = opened(UCB, OPTIONS);
  const found: number[] = [];
  let state = policy.start;
  for (let round = 0; round < 3; round++) {
    found.push(depthOf(policy, state));
    state = after(policy, [[found.at(-1) ?? 0, 1]], { from: state });
  }
  assert.deepEqual(found, [2, 0, 5], "3 steps are the default, 2 are the nearest");
});

Deno.test("ucb policy: mean reward over the largest and a bonus for few rounds", () => {
  // 0: mean 1 of 4 rounds; 2: 2 of 4; 5: 1.2 of one; ln 9 = 2.197, the largest is 2.
  const rounds: [number, number][] = [
    ...Array<[number, number]>(4).fill([0, 1]),
    ...Array<[number, number]>(4).fill([2, 2]),
    [5, 1.2],
  ];
  const at = (bonus: number) => {
    const policy = opened(UCB, { ...OPTIONS, bonus });
    return depthOf(policy, after(policy, rounds));
  };
  // 1 + bonus sqrt(2 * 2.197 / 4) against 0.6 + bonus sqrt(2 * 2.197): equal at 0.3817.
  assert.equal(at(0.38), 2);
  assert.equal(at(0.384), 5);
});

Deno.test("ucb policy: forgets where it is told to", () => {
  const rounds: [number, number][] = [
    ...Array<[number, number]>(30).fill([0, 1]),
    ...Array<[number, number]>(30).fill([2, 3]),
    [5, 0.5],
    ...Array<[number, number]>(10).fill([2, 0.5]),
  ];
  const at = (discount: number) => {
    const policy = opened(UCB, { ...OPTIONS, bonus: 0, discount });
    return depthOf(policy, after(policy, rounds));
  };
  assert.equal(at(1), 2);
  assert.equal(at(0.7), 0);
});
