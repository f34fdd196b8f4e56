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

Deno.test("loop: what is submitted before the first step has returned waits for its end", async () => {
  let [submitted, steps, inStep, most] = [0, 0, 0, 0];
  const scheduler: Scheduler = {
    counts: { preemptions: 0, waits: 0, catchUps: 0, catchUpMs: 0, wasted: 0 },
    submit() {
      submitted++;
      return { done: false, cancel: () => {} };
    },
    async step() {
      most = Math.max(most, ++inStep);
      // As a hook may.
      if (++steps === 1) submit(REQUEST);
      await undefined;
      inStep--;
      return steps < 6;
    },
    stepAtOnce: () => assert.fail(),
    fail: (error) => assert.fail(error),
  };
  const { submit, idle } = engineLoop(scheduler);
  submit(REQUEST);
  await idle();
  assert.equal(submitted, 2);
  assert.deepEqual([most, steps], [1, 7]);
});

Deno.test("loop: what is submitted together begins with the same step", async () => {
  const before: number[] = [];
  let submitted = 0;
  const scheduler: Scheduler = {
    counts: { preemptions: 0, waits: 0, catchUps: 0, catchUpMs: 0, wasted: 0 },
    submit() {
      submitted++;
      return { done: false, cancel: () => {} };
    },
    async step() {
      before.push(submitted);
      await undefined;
      return before.length < 2;
    },
    stepAtOnce: () => assert.fail(),
    fail: (error) => assert.fail(error),
  };
  const { submit, idle } = engineLoop(scheduler);
  for (let i = 0; i < 3; i++) submit(REQUEST);
  await idle();
  assert.equal(before[0], 3);
});
