import assert from "node:assert/strict";
import { adaptively, asAsked, type AskedSteps } from "../../src/engine/schedule/speculation.ts";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { adaptive } from "../../src/speculate/policies/adaptive.ts";

/** Decides on every second round by that round alone; batches of 4 and more by themselves. */
function controller() {
  const slot = { candidate_steps: [1, 3, 7] };
  const fields = { ema_alpha: 1, warmup_batches: 0, update_interval: 2 };
  const config = parseAdaptiveConfig({ "1": slot, "4": slot, ...fields });
  return adaptively(adaptive(config, { initialSteps: 3 }));
}

const SILENT: AskedSteps = [undefined, undefined];

Deno.test("static: a round is as deep as the deepest of its requests, 3 where one is silent", () => {
  const speculation = asAsked(3);
  const picks = ([[undefined], [0], [0, undefined], [5, undefined], [1, 0]] as AskedSteps[])
    .map((asked) => speculation.pick(asked.length, asked));
  assert.deepEqual(picks, [3, 0, 3, 5, 1]);
  assert.equal(speculation.holds(1, [undefined]), Infinity);
});

Deno.test("adaptive: only a round whose requests all ask for 0 steps has none", () => {
  const speculation = controller();
  const rounds: AskedSteps[] = [SILENT, [0, 0], [0, undefined], [0, 1], [7, 7]];
  assert.deepEqual(rounds.map((asked) => speculation.pick(2, asked)), [3, 0, 3, 3, 3]);
  assert.deepEqual(rounds.map((asked) => speculation.holds(2, asked)), [2, Infinity, 2, 2, 2]);
});

Deno.test("adaptive: every round is counted, its own rounds alone are learned", () => {
  const speculation = controller();
  const { slots } = speculation.report;
  speculation.learn(2, [0, 0], { numSteps: 0, ms: 5, asked: [0, 0] });
  speculation.learn(2, [7, 7], { numSteps: 7, ms: 5, asked: SILENT });
  // Who drafts has ended, the other goes on in the same group.
  speculation.learn(2, [3], { numSteps: 3, ms: 5, asked: [0] });
  const { rounds, tier_ms, active_num_steps, ...report } = speculation.report;
  assert.deepEqual([rounds, tier_ms, active_num_steps], [3, { 0: 5, 7: 5, 3: 5 }, 3]);
  assert.deepEqual([report.slots, report.switches], [slots, []]);
  assert.equal(speculation.holds(2, SILENT), 2);
});

Deno.test("adaptive: of a mixed round those that leave the choice are learned", () => {
  const speculation = controller();
  const asked = [0, undefined, 2];
  speculation.learn(3, [0, 3, 2], { numSteps: 3, ms: 1, asked });
  assert.equal(speculation.report.slots[0]?.ema_accept_len, 2.5);
  assert.equal(speculation.holds(3, asked), 1);
  speculation.learn(3, [0, 3, 3], { numSteps: 3, ms: 1, asked });
  assert.deepEqual(speculation.report.switches.map(({ round, from, to }) => [round, from, to]), [
    [2, 3, 7],
  ]);
  assert.equal(speculation.pick(3, asked), 7);
});

Deno.test("adaptive: a round is learned for the batch it was launched with", () => {
  const speculation = controller();
  // Three of four have ended meanwhile.
  for (let round = 0; round < 2; round++) {
    speculation.learn(4, [0], { numSteps: 3, ms: 1, asked: [undefined] });
  }
  assert.deepEqual(speculation.report.slots.map(({ num_steps }) => num_steps), [3, 1]);
});
