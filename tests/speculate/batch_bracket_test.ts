import assert from "node:assert/strict";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { slotIndex } from "../../src/speculate/batch_bracket.ts";
import { bucketsForStep } from "../reference/router.ts";
import { SGLANG_DEFAULT } from "./sglang_default.ts";

const { slots } = parseAdaptiveConfig(SGLANG_DEFAULT);
const BUCKETS = [4, 8, 16, 32];

function candidates(batchSize: number, buckets?: readonly number[]) {
  return slots[slotIndex({ slots, buckets }, batchSize)]?.candidateSteps;
}

Deno.test("router: a batch goes to the last slot at or below it", () => {
  assert.deepEqual(slots.map(({ batchSize }) => batchSize), [1, 8, 32, 64]);
  const cases: [number, number[]][] = [
    [1, [1, 3, 5, 7]],
    [7, [1, 3, 5, 7]],
    [8, [0, 1, 3]],
    [31, [0, 1, 3]],
    [32, [0, 1]],
    [1000, [0]],
  ];
  for (const [batchSize, steps] of cases) assert.deepEqual(candidates(batchSize), steps);
});

Deno.test("router: below the smallest slot, the smallest slot", () => {
  const { slots } = parseAdaptiveConfig({
    "4": { candidate_steps: [3] },
    "8": { candidate_steps: [1] },
  });
  assert.deepEqual([0, 1, 4, 8].map((size) => slotIndex({ slots }, size)), [0, 0, 0, 1]);
});

Deno.test("router: with buckets, the padded batch counts", () => {
  assert.deepEqual(candidates(5, BUCKETS), [0, 1, 3]);
  assert.deepEqual(candidates(17, BUCKETS), [0, 1]);
  assert.deepEqual(candidates(100, BUCKETS), [0]);
  assert.deepEqual(candidates(5, [32, 4, 16, 8]), [0, 1, 3]);
});

Deno.test("router: a tier needs programs at the buckets of its slots only", () => {
  const forStep = (steps: number) => bucketsForStep({ slots, buckets: BUCKETS }, steps);
  assert.deepEqual(forStep(1), [4, 8, 16, 32]);
  assert.deepEqual(forStep(3), [4, 8, 16]);
  assert.deepEqual(forStep(5), [4]);
  assert.deepEqual(forStep(7), [4]);
  assert.deepEqual(forStep(2), []);
  assert.equal(bucketsForStep({ slots }, 1), undefined);
});
