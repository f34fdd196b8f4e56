import assert from "node:assert/strict";
import {
  calibrate,
  CALIBRATION_OPTIONS,
  firstCalibration,
  logit,
  openWindow,
  sigmoid,
} from "../../../src/speculate/estimate/calibration.ts";
import { policyRandom } from "../../../src/speculate/noise.ts";

const TRUE_SLOPE = 0.7;
const TRUE_INTERCEPTS = [-0.5, 0.3, 0.1];

/** A chain of three drafts whose logits give the chance by TRUE_SLOPE and TRUE_INTERCEPTS. */
function chainOf(n: number) {
  const random = policyRandom(3);
  const logits = TRUE_INTERCEPTS.map((_, k) => 6 * (random(n, k) / 2 ** 32) - 2);
  let accepted = 0;
  while (accepted < 3) {
    const chance = sigmoid(
      TRUE_SLOPE * (logits[accepted] ?? 0) + (TRUE_INTERCEPTS[accepted] ?? 0),
    );
    if (random(n, 10 + accepted) / 2 ** 32 >= chance) break;
    accepted++;
  }
  return { depth: 3, accepted, logits };
}

Deno.test("calibration: windows find the slope and the intercepts from tested drafts alone", () => {
  let window = openWindow(firstCalibration(3));
  for (let round = 0; round < 3000; round++) {
    const chains = Array.from({ length: 8 }, (_, i) => chainOf(round * 8 + i));
    window = calibrate(window, chains);
  }
  const { slope, intercepts } = window.at;
  assert(Math.abs(slope - TRUE_SLOPE) < 0.08, `${slope}`);
  TRUE_INTERCEPTS.forEach((truth, k) =>
    assert(Math.abs((intercepts[k] ?? 0) - truth) < 0.15, `${intercepts}`)
  );
});

Deno.test("calibration: a window ends after its rounds or samples, and begins vLLM's constants", () => {
  let window = openWindow(firstCalibration(2));
  assert.deepEqual(window.at, { slope: 0.5, intercepts: [-0.2, -0.2] });
  const chain = { depth: 2, accepted: 1, logits: [1, 1] };
  for (let round = 1; round < CALIBRATION_OPTIONS.rounds; round++) {
    window = calibrate(window, [chain]);
    assert.equal(window.rounds, round);
    assert.equal(window.at.slope, 0.5);
  }
  window = calibrate(window, [chain]);
  assert.equal(window.rounds, 0);
  assert(window.at.slope !== 0.5 || window.at.intercepts[0] !== -0.2);
  const early = calibrate(openWindow(firstCalibration(2)), [chain, chain], {
    ...CALIBRATION_OPTIONS,
    samples: 4,
  });
  assert.equal(early.rounds, 0, "two chains have four samples");
});

Deno.test("calibration: drafts after the first that is not accepted teach nothing", () => {
  const start = openWindow(firstCalibration(3));
  const next = calibrate(start, [{ depth: 3, accepted: 0, logits: [1, 5, 5] }]);
  assert.deepEqual(next.samples, [1, 0, 0]);
  const censored = calibrate(start, [{ depth: 2, accepted: 2, logits: [1, 1, 1] }]);
  assert.deepEqual(censored.samples, [1, 1, 0]);
});

Deno.test("calibration: nothing but certain drafts, and none of them, keeps it finite", () => {
  for (const accepted of [0, 3]) {
    let window = openWindow(firstCalibration(3));
    for (let round = 0; round < 5000; round++) {
      window = calibrate(window, [{ depth: 3, accepted, logits: [logit(1), logit(1), logit(1)] }]);
    }
    for (const each of [window.at.slope, ...window.at.intercepts]) assert(Math.abs(each) <= 8);
  }
});

Deno.test("calibration: confidences are clamped where the kernel clamps them", () => {
  // EPSILON of kernels/round/allocate.wgsl
  for (const [confidence, clamped] of [[1, 1 - 1e-6], [0, 1e-6], [1 - 1e-5, 1 - 1e-5]] as const) {
    assert.equal(logit(confidence), Math.log(clamped / (1 - clamped)));
  }
});
