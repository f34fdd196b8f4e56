import assert from "node:assert/strict";
import { openItlLimit } from "../../../src/engine/schedule/itl_limit.ts";

Deno.test("a forward of prompts gets what the longest of the last 32 groups left", () => {
  const limit = openItlLimit(50);
  assert.equal(limit.groupMs, 25);
  assert.equal(limit.promptMs, 50);
  for (const ms of [12, 20, 9]) limit.learn(ms);
  assert.equal(limit.promptMs, 30);
  for (let i = 0; i < 30; i++) limit.learn(10);
  assert.equal(limit.promptMs, 30);
  limit.learn(10);
  assert.equal(limit.promptMs, 40);
  limit.learn(70);
  assert.equal(limit.promptMs, -20);
});

Deno.test("without a limit nothing is bounded", () => {
  const limit = openItlLimit();
  limit.learn(1000);
  assert.deepEqual([limit.groupMs, limit.promptMs], [Infinity, Infinity]);
});
