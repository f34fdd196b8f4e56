import assert from "node:assert/strict";
import { BEG_MAB } from "../../../../src/speculate/policies/bandit/beg_mab.ts";
import { outcomeOf } from "../../rounds.ts";
import { after, depthOf, drawing, opened } from "./trials.ts";

const OPTIONS = { steps: [0, 3], hold: 1 };

Deno.test("beg-mab policy: an odd round does not move the median", () => {
  const policy = opened(BEG_MAB, OPTIONS);
  const rounds: [number, number][] = [[3, 1], [0, 2], [3, 1], [0, 2], [3, 1000], [0, 2]];
  assert.equal(depthOf(policy, after(policy, rounds)), 0);
  assert.equal(depthOf(policy, after(policy, [...rounds, [3, 4], [3, 4]])), 3);
});

Deno.test("beg-mab policy: accepted lengths of all batch sizes are one", () => {
  const policy = opened(BEG_MAB, OPTIONS);
  const round = (
    state: unknown,
    batchSize: number,
    numSteps: number,
    accepted: number,
    ms: number,
  ) =>
    policy.learn(
      state,
      outcomeOf({
        batchSize,
        numSteps,
        accepted: Array(batchSize).fill(accepted),
        ms: { round: ms, catchUp: 0 },
      }),
    ).state;
  // Batch 1: 3 steps take twice as long, and nothing is accepted in its one round.
  let state = round(round(policy.start, 1, 3, 0, 2), 1, 0, 0, 1);
  assert.equal(depthOf(policy, state), 0);
  for (let i = 0; i < 2; i++) state = round(state, 16, 3, 3, 2);
  // Two of three rounds had 4 tokens: 4 / 2 > 1 / 1.
  assert.equal(depthOf(policy, state), 3);
});

Deno.test("beg-mab policy: the window forgets", () => {
  const rounds: [number, number][] = [
    ...Array<[number, number]>(9).fill([3, 5]),
    [0, 2],
    ...Array<[number, number]>(3).fill([3, 1]),
  ];
  const at = (window: number) => {
    const policy = opened(BEG_MAB, { ...OPTIONS, window });
    return depthOf(policy, after(policy, rounds));
  };
  assert.deepEqual([300, 4].map(at), [3, 0]);
});

Deno.test("beg-mab policy: explores with chance epsilon, once every arm has a round", () => {
  const at = (...drawn: number[]) => {
    const policy = opened(BEG_MAB, { ...OPTIONS, epsilon: 0.2 }, drawing(...drawn));
    return depthOf(policy, after(policy, [[3, 5], [0, 2]]));
  };
  assert.deepEqual([at(0.19, 0), at(0.21, 0), at(0.19, 0.9)], [0, 3, 3]);
  const fresh = opened(BEG_MAB, { ...OPTIONS, epsilon: 1 }, drawing(0, 0));
  assert.equal(depthOf(fresh, fresh.start), 3);
});
