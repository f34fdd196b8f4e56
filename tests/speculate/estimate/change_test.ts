import assert from "node:assert/strict";
import { NO_CHANGE, watch } from "../../../src/speculate/estimate/change.ts";
import { policyRandom } from "../../../src/speculate/noise.ts";

/** Rounds until an alarm, of normal residuals around a mean. */
function roundsToAlarm(mean: number, seed: number, most: number): number {
  const random = policyRandom(seed);
  let cusum = NO_CHANGE;
  for (let round = 1; round <= most; round++) {
    const [a, b] = [0, 1].map((purpose) => (random(round, purpose) + 0.5) / 2 ** 32);
    const normal = Math.sqrt(-2 * Math.log(a ?? 1)) * Math.cos(2 * Math.PI * (b ?? 0));
    const next = watch(cusum, mean + normal);
    if (next.changed) return round;
    cusum = next.cusum;
  }
  return most;
}

function usual(mean: number): number {
  const runs = Array.from({ length: 200 }, (_, seed) => roundsToAlarm(mean, seed, 5000));
  return runs.reduce((sum, each) => sum + each, 0) / runs.length;
}

Deno.test("change: a shift of a standard deviation either way is found in about ten rounds", () => {
  for (const mean of [1, -1]) {
    const rounds = usual(mean);
    assert(rounds > 8 && rounds < 13, `${rounds}`);
  }
});

Deno.test("change: without one, an alarm comes every few hundred rounds", () => {
  const rounds = usual(0);
  assert(rounds > 300 && rounds < 700, `${rounds}`);
});

Deno.test("change: begins anew after an alarm, and what is no number is left out", () => {
  assert.deepEqual(watch(NO_CHANGE, 100), { cusum: NO_CHANGE, changed: true });
  const some = watch(NO_CHANGE, 2).cusum;
  assert.deepEqual(watch(some, NaN), { cusum: some, changed: false });
});
