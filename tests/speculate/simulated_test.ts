import assert from "node:assert/strict";
import { drawAccepted } from "../reference/simulated.ts";

/** How often each count from 0 to numSteps is drawn over many positions. */
function frequencies(acceptance: readonly number[], numSteps: number, draws: number): number[] {
  const counts = Array<number>(numSteps + 1).fill(0);
  for (let length = 0; length < draws; length++) {
    const accepted = drawAccepted(acceptance, { seed: length % 5, length, numSteps });
    counts[accepted] = (counts[accepted] ?? 0) + 1 / draws;
  }
  return counts;
}

Deno.test("simulated: counts follow the probabilities, the last one repeated", () => {
  const found = frequencies([0.8, 0.5], 3, 40_000);
  const expected = [0.2, 0.8 * 0.5, 0.8 * 0.5 * 0.5, 0.8 * 0.5 * 0.5];
  // 4 standard deviations of a share of 40,000 draws are at most 0.01.
  found.forEach((share, i) => assert.ok(Math.abs(share - (expected[i] ?? NaN)) < 0.01, `${found}`));
});

Deno.test("simulated: 0 and 1 are exact", () => {
  assert.deepEqual(frequencies([0], 3, 1000).map(Math.round), [1, 0, 0, 0]);
  assert.deepEqual(frequencies([1], 3, 1000).map(Math.round), [0, 0, 0, 1]);
  assert.equal(frequencies([1], 3, 1000)[0], 0);
});

Deno.test("simulated: a position's draw is the same whatever round it falls in", () => {
  for (let length = 0; length < 100; length++) {
    const whole = drawAccepted([0.7], { seed: 3, length, numSteps: 7 });
    const first = drawAccepted([0.7], { seed: 3, length, numSteps: 1 });
    const rest = drawAccepted([0.7], { seed: 3, length: length + 1, numSteps: 6 });
    assert.equal(whole, first === 0 ? 0 : 1 + rest);
  }
});
