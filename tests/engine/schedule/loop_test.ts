import assert from "node:assert/strict";
import type { GenerateRequest } from "../../../src/engine/schedule/events.ts";
import { engineLoop } from "../../../src/engine/schedule/loop.ts";
import type { Scheduler } from "../../../src/engine/schedule/scheduler.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";

const REQUEST: GenerateRequest = {
  promptIds: [1],
  sampling: GREEDY,
  maxTokens: 1,
  stop: [],
  ignoreEos: true,
};

/** A scheduler whose steps are these. */
function scheduled(step: Scheduler["step"]): { scheduler: Scheduler; submitted: () => number } {
  let submitted = 0;
  const scheduler: Scheduler = {
    counts: { preemptions: 0, waits: 0, catchUps: 0, catchUpMs: 0, wasted: 0 },
    submit() {
      submitted++;
      return { done: false, cancel: () => {} };
    },
    step,
    stepSync: () => assert.fail(),
    fail: (error) => assert.fail(error),
  };
  return { scheduler, submitted: () => submitted };
}

Deno.test("loop: what is submitted before the first step has returned waits for its end", async () => {
  let [steps, inStep, most] = [0, 0, 0];
  const { scheduler, submitted } = scheduled(async () => {
    most = Math.max(most, ++inStep);
    // As a hook may.
    if (++steps === 1) submit(REQUEST);
    await undefined;
    inStep--;
    return steps < 6;
  });
  const { submit, idle } = engineLoop(scheduler);
  submit(REQUEST);
  await idle();
  assert.equal(submitted(), 2);
  assert.deepEqual([most, steps], [1, 7]);
});

Deno.test("loop: requests that are submitted together share the first step", async () => {
  const before: number[] = [];
  const { scheduler, submitted } = scheduled(() => {
    before.push(submitted());
    return Promise.resolve(before.length < 2);
  });
  const { submit, idle } = engineLoop(scheduler);
  for (let i = 0; i < 3; i++) submit(REQUEST);
  await idle();
  assert.equal(before[0], 3);
});
