import assert from "node:assert/strict";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { emitConfig } from "../../src/speculate/emit_config.ts";
import { ema } from "../../src/speculate/policies/ema.ts";
import { contextOf, outcomeOf } from "./rounds.ts";

Deno.test("emitted config: each batch size runs what won there", () => {
  const emitted = emitConfig([
    { batchSize: 8, steps: [0] },
    { batchSize: 1, steps: [7] },
    { batchSize: 2, steps: [3] },
    { batchSize: 4, steps: [3, 1, 3] },
  ]);
  assert.deepEqual(Object.keys(emitted), ["1", "2", "4", "8"]);
  assert.deepEqual(emitted["4"], {
    candidate_steps: [1, 3],
    up_hysteresis: 0,
    down_hysteresis: -0.25,
    ceiling_coeff: 0,
  });
  const config = parseAdaptiveConfig(JSON.parse(JSON.stringify(emitted)));
  const policy = ema(config, { initialSteps: 7 });
  const picks = [1, 2, 3, 8, 100].map((batchSize) =>
    policy.pick(policy.start, contextOf(batchSize)).tier.depth
  );
  assert.deepEqual(picks, [7, 3, 3, 0, 0]);
});

Deno.test("emitted config: a slot with one winner stays with it", () => {
  const config = parseAdaptiveConfig(emitConfig([{ batchSize: 1, steps: [3] }]));
  const policy = ema(config, { initialSteps: 3 });
  let state = policy.start;
  for (let round = 0; round < 100; round++) {
    const accepted = [round < 50 ? 0 : 3];
    const learned = policy.learn(state, outcomeOf({ batchSize: 1, numSteps: 3, accepted }));
    assert.equal(learned.change, undefined);
    state = learned.state;
  }
  assert.equal(policy.pick(state, contextOf(1)).tier.depth, 3);
});
