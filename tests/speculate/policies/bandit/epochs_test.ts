import assert from "node:assert/strict";
import { bucketOf, epochPolicy } from "../../../../src/speculate/policies/bandit/epochs.ts";
import type { Policy } from "../../../../src/speculate/policy.ts";
import { contextOf } from "../../rounds.ts";
import { after, BUCKETS, depthOf, drawing } from "./trials.ts";

/** A bandit that plays its arms in turn, three rounds each. Its statistics are the outcomes that it was told. */
const inTurn = epochPolicy<readonly string[]>({
  steps: [0, 2],
  setup: { buckets: BUCKETS, random: drawing() },
  rule: {
    start: [],
    rounds: () => 3,
    choose: (told, { bucket }) =>
      told.filter((line) => line.startsWith(`ended ${bucket}`)).length % 2,
    learn: (told, { bucket, arm }) => [...told, `${bucket}:${arm}`],
    ended: (told, { bucket, arm }) => [...told, `ended ${bucket}:${arm}`],
    rate: () => undefined,
  },
}) as Policy;

function holds(state: unknown, batchSize: number): number {
  return inTurn.holds(state, contextOf(batchSize));
}

Deno.test("epochs: an arm is kept for its rounds, then the next is chosen", () => {
  const depths: number[][] = [];
  let state = inTurn.start;
  for (let round = 0; round < 7; round++) {
    const depth = depthOf(inTurn, state);
    depths.push([depth, holds(state, 1)]);
    state = after(inTurn, [[depth, 1]], { from: state });
  }
  assert.deepEqual(depths, [[0, 3], [0, 2], [0, 1], [2, 3], [2, 2], [2, 1], [0, 3]]);
  assert.deepEqual((state as { stats: string[] }).stats.slice(0, 5), [
    ...["0:0", "0:0", "0:0", "ended 0:0", "0:1"],
  ]);
});

Deno.test("epochs: batch sizes have their own, and those of one bucket share it", () => {
  const state = after(inTurn, [[0, 1], [0, 1], [0, 1]], { batchSize: 3 });
  assert.deepEqual([1, 2, 4, 5].map((batch) => depthOf(inTurn, state, batch)), [0, 2, 2, 0]);
});

Deno.test("epochs: rounds of another arm than that in play are dropped", () => {
  const state = after(inTurn, [[0, 1]]);
  assert.equal(after(inTurn, [[2, 1], [5, 1]], { from: state }), state);
});

Deno.test("epochs: a round that cannot be measured is played all the same", () => {
  const state = after(inTurn, [[0, NaN], [0, 1], [0, 1]]);
  assert.equal(depthOf(inTurn, state), 2);
  assert.deepEqual((state as { stats: string[] }).stats, ["0:0", "0:0", "ended 0:0"]);
});

Deno.test("epochs: the report tells the rounds of each batch size", () => {
  const state = after(inTurn, [[0, 1], [0, 1], [0, 1], [2, 1]]);
  const arms = [[0, 3], [2, 1]]
    .map(([num_steps, rounds]) => ({ num_steps, rounds, tokens_per_second: null }));
  assert.deepEqual(inTurn.report(state), {
    json: { batches: [{ batch_size: 1, arms }] },
    rows: [["rounds", "to batch 1: 0 steps 3, 2 steps 1"]],
  });
  assert.deepEqual(inTurn.report(inTurn.start).rows, [["rounds", "none"]]);
});

Deno.test("epochs: a batch is in the first bucket that holds it", () => {
  assert.deepEqual([0, 1, 2, 4, 16, 17].map((batch) => bucketOf(BUCKETS, batch)), [
    0,
    0,
    1,
    1,
    2,
    2,
  ]);
  assert.equal(bucketOf([], 3), 0);
});
