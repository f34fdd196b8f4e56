import assert from "node:assert/strict";
import { chiSquareSurvival, gTest } from "./statistics.ts";

const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual / expected - 1) < 1e-9, `${actual}, expected ${expected}`);

Deno.test("statistics: the chi-square tail agrees with its closed forms", () => {
  // 2 degrees: exp(-x/2). 4 degrees: (1 + x/2) exp(-x/2).
  for (const x of [0.01, 1, 3.7, 12, 60]) {
    near(chiSquareSurvival(x, 2), Math.exp(-x / 2));
    near(chiSquareSurvival(x, 4), (1 + x / 2) * Math.exp(-x / 2));
  }
  // Tables, 1 and 30 degrees.
  assert.ok(Math.abs(chiSquareSurvival(3.841458820694124, 1) - 0.05) < 1e-12);
  assert.ok(Math.abs(chiSquareSurvival(43.77297182574219, 30) - 0.05) < 1e-10);
  assert.equal(chiSquareSurvival(0, 5), 1);
});

Deno.test("statistics: the G statistic, pooling and impossible cells", () => {
  const fair = gTest([60, 40], [0.5, 0.5]);
  near(fair.statistic, 2 * (60 * Math.log(1.2) + 40 * Math.log(0.8)));
  assert.equal(fair.freedom, 1);
  assert.equal(gTest([50, 46, 2, 1, 1], [0.5, 0.46, 0.02, 0.01, 0.01]).freedom, 2);
  assert.deepEqual(gTest([50, 50, 0], [0.5, 0.5, 0]), { statistic: 0, freedom: 1, p: 1 });
  assert.equal(gTest([99, 1], [1, 0]).p, 0);
  assert.equal(gTest([100, 0], [1, 0]).p, 1);
});
