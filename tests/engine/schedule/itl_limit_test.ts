import assert from "node:assert/strict";
import { openItlLimit } from "../../../src/engine/schedule/itl_limit.ts";

Deno.test("a forward of prompts gets what the second longest of the last 32 groups left", () => {
  const limit = openItlLimit(50);
  assert.deepEqual([limit.groupMs, limit.promptMs], [25, 50]);
  limit.ran(12);
  assert.equal(limit.promptMs, 38);
  for (const ms of [20, 9, 400]) limit.ran(ms);
  // One of them is taken for a pause.
  assert.equal(limit.promptMs, 30);
  for (let i = 0; i < 30; i++) limit.ran(10);
  assert.equal(limit.promptMs, 40);
  limit.ran(70);
  limit.ran(60);
  assert.equal(limit.promptMs, -10);
});

Deno.test("the group after a forward of prompts gets what that left", () => {
  const limit = openItlLimit(50);
  limit.stored(30);
  assert.equal(limit.groupMs, 20);
  limit.stored(15);
  assert.equal(limit.groupMs, 5);
  // A group that is submitted while this one runs has no forward before it.
  limit.began();
  assert.equal(limit.groupMs, 25);
  limit.stored(10);
  assert.equal(limit.groupMs, 25);
});

Deno.test("without a limit a group may take 18 ms or half as long as the forward of prompts before it", () => {
  const limit = openItlLimit();
  assert.deepEqual([limit.groupMs, limit.promptMs], [Infinity, Infinity]);
  limit.stored(36);
  assert.equal(limit.groupMs, 18);
  limit.stored(964);
  assert.equal(limit.groupMs, 500);
  limit.began();
  limit.ran(1000);
  assert.deepEqual([limit.groupMs, limit.promptMs], [Infinity, Infinity]);
});
