import assert from "node:assert/strict";
import { tierText } from "../../src/speculate/round_shape.ts";
import {
  parseAdaptiveConfig,
  unionSteps,
  unionTiers,
  withInitialSteps,
} from "../../src/speculate/adaptive_config.ts";
import { SGLANG_DEFAULT } from "./sglang_default.ts";

function refused(json: unknown, message: string | RegExp): void {
  assert.throws(() => parseAdaptiveConfig(json), { name: "AdaptiveConfigError", message });
}

const steps = (...candidate_steps: unknown[]) => ({ candidate_steps });

Deno.test("adaptive config: entries by batch size, ascending, with SGLang's defaults", () => {
  const { slots } = parseAdaptiveConfig(SGLANG_DEFAULT);
  assert.deepEqual(
    slots.map(({ batchSize, candidateSteps }) => [batchSize, candidateSteps]),
    [[1, [1, 3, 5, 7]], [8, [0, 1, 3]], [32, [0, 1]], [64, [0]]],
  );
  assert.deepEqual(slots[1], {
    batchSize: 8,
    candidateSteps: [0, 1, 3],
    candidateTrees: [],
    emaAlpha: 0.2,
    updateInterval: 5,
    warmupBatches: 10,
    downHysteresis: 0,
    upHysteresis: 0,
    ceilingCoeff: 0,
    flat: false,
  });
  assert.equal(parseAdaptiveConfig({ "1": steps(1) }).slots[0]?.downHysteresis, -0.25);
});

Deno.test("adaptive config: a slot's own values win over the global ones", () => {
  const { slots } = parseAdaptiveConfig({
    up_hysteresis: 0.5,
    ema_alpha: 0.4,
    "16": { ...steps(1, 3), up_hysteresis: 0.1 },
    "2": steps(1),
  });
  assert.deepEqual(slots.map(({ upHysteresis }) => upHysteresis), [0.5, 0.1]);
  assert.deepEqual(slots.map(({ emaAlpha }) => emaAlpha), [0.4, 0.4]);
  assert.deepEqual(slots.map(({ batchSize }) => batchSize), [2, 16]);
});

Deno.test("adaptive config: candidates are sorted and distinct; a bool is a Python int", () => {
  const [slot] = parseAdaptiveConfig({ "0": steps(7, 3, true, 1, 7, false) }).slots;
  assert.deepEqual([slot?.batchSize, slot?.candidateSteps], [0, [0, 1, 3, 7]]);
});

Deno.test("adaptive config: the union of the candidates", () => {
  const union = (json: unknown) => unionSteps(parseAdaptiveConfig(json));
  assert.deepEqual(union(SGLANG_DEFAULT), [0, 1, 3, 5, 7]);
  assert.deepEqual(union({ "1": steps(2, 4) }), [2, 4]);
  assert.deepEqual(union({ "1": steps(1, 5), "8": steps(3, 5, 7) }), [1, 3, 5, 7]);
});

Deno.test("adaptive config: what is no object", () => {
  const prefix = "it must be a JSON object, got ";
  const names: [unknown, string][] = [
    [[1, 3], "[1,3]"],
    ["x", '"x"'],
    [3, "3"],
    [0.5, "0.5"],
    [null, "null"],
    [true, "true"],
  ];
  for (const [json, name] of names) refused(json, prefix + name);
});

Deno.test("adaptive config: candidate_steps", () => {
  const text = (got: string) =>
    `batch size 1: candidate_steps must be a list of non-negative integers, got ${got}`;
  const wrong: [unknown, string][] = [
    [{ candidate_steps: "bad" }, '"bad"'],
    [{ candidate_steps: "it's" }, `"it's"`],
    [{ candidate_steps: [] }, "[]"],
    [{}, "nothing"],
    [{ candidate_steps: null }, "null"],
    [{ candidate_steps: 3 }, "3"],
    [{ candidate_steps: [1, -1] }, "[1,-1]"],
    [{ candidate_steps: [1.5, "x", true, null] }, '[1.5,"x",true,null]'],
    [{ candidate_steps: { a: [1] } }, '{"a":[1]}'],
  ];
  for (const [entry, got] of wrong) refused({ "1": entry }, text(got));
  refused({ "1": [1, 5] }, "batch size 1: expected an object with candidate_steps, got [1,5]");
});

Deno.test("adaptive config: no batch size", () => {
  const text = (got: string) =>
    'it needs a batch size as a key, as in {"1": {"candidate_steps": [1, 3, 7]}}; ' +
    `its keys are ${got}`;
  refused({}, text("[]"));
  refused({ not_a_bs: "bad" }, text('["not_a_bs"]'));
  refused({ ema_alpha: 0.5, "-1": steps(1) }, text('["ema_alpha","-1"]'));
});

Deno.test("adaptive config: strategy", () => {
  assert.equal(parseAdaptiveConfig({ strategy: "ema", "1": steps(1) }).slots.length, 1);
  refused(
    { strategy: "x", "1": steps(1) },
    'strategy must be "ema", got "x"',
  );
  refused({ strategy: null, "1": steps(1) }, /got null$/);
  refused(
    { strategy: "throughput_aware", "1": steps(1) },
    /"throughput_aware" is a policy of its own here: --policy throughput-aware, /,
  );
  const idle = { window_size: 20, profile_run_batch_sizes: null, profile_run_n_measure: 10 };
  assert.equal(parseAdaptiveConfig({ ...idle, "1": steps(1) }).slots.length, 1);
});

Deno.test("adaptive config: unknown keys and values out of range are told", () => {
  refused({ emaalpha: 0.2, "1": steps(1) }, /^unknown key "emaalpha", known: ema_alpha, /);
  refused(
    { "8": { ...steps(1), steps: 3 } },
    /^batch size 8: unknown key "steps", known: candidate_steps/,
  );
  refused({ "8": { ...steps(1), strategy: "ema" } }, /^batch size 8: unknown key "strategy"/);
  refused(JSON.parse('{"1": {"candidate_steps": [1]}, "__proto__": 1}'), /unknown key "__proto__"/);
  refused(
    { candidate_steps: [1], "1": steps(1) },
    /^candidate_steps has no effect next to batch sizes/,
  );
  refused({ "08": steps(1) }, 'batch size 08: write the batch size as "8"');
  const slot = (fields: object, message: string) =>
    refused({ "8": { ...steps(1), ...fields } }, message);
  slot({ ema_alpha: 1.5 }, "batch size 8: ema_alpha must be a number from 0 to 1, got 1.5");
  slot({ ema_alpha: "x" }, 'batch size 8: ema_alpha must be a number from 0 to 1, got "x"');
  slot(
    { update_interval: 0 },
    "batch size 8: update_interval must be an integer of at least 1, got 0",
  );
  slot(
    { warmup_batches: 0.5 },
    "batch size 8: warmup_batches must be an integer of at least 0, got 0.5",
  );
  slot({ up_hysteresis: null }, "batch size 8: up_hysteresis must be a number, got null");
  refused({ ema_alpha: -1, "8": steps(1) }, /^batch size 8: ema_alpha must be/);
});

Deno.test("adaptive config: the flat format", () => {
  const config = parseAdaptiveConfig({ candidate_steps: [7, 3, 1], ema_alpha: 0.3 });
  assert.deepEqual(config.slots, [{
    batchSize: 1,
    candidateSteps: [1, 3, 7],
    candidateTrees: [],
    emaAlpha: 0.3,
    updateInterval: 5,
    warmupBatches: 10,
    downHysteresis: -0.25,
    upHysteresis: 0,
    ceilingCoeff: 0,
    flat: true,
  }]);
  assert.deepEqual(unionSteps(withInitialSteps(config, 2)), [1, 2, 3, 7]);
  assert.deepEqual(unionSteps(withInitialSteps(config, 3)), [1, 3, 7]);
  assert.deepEqual(unionSteps(withInitialSteps(config, 0)), [1, 3, 7]);
  const byBatch = parseAdaptiveConfig({ "1": steps(1, 3) });
  assert.deepEqual(unionSteps(withInitialSteps(byBatch, 2)), [1, 3]);
  refused(
    { candidate_steps: [0, 1] },
    "candidate_steps must be a list of positive integers, got [0,1]",
  );
  refused(
    { candidate_steps: [3, 3] },
    "candidate_steps must have at least 2 distinct values, got [3,3]",
  );
  refused({ candidate_steps: [1, 3], ceiling_coeff: 1 }, /^unknown key "ceiling_coeff"/);
  refused({ candidate_steps: [1, 3], ema_alpha: 2 }, /^ema_alpha must be/);
});

Deno.test("adaptive config: a checked config cannot be changed", () => {
  const config = parseAdaptiveConfig(SGLANG_DEFAULT);
  for (const value of [config, config.slots, ...config.slots]) assert(Object.isFrozen(value));
  for (const slot of config.slots) assert(Object.isFrozen(slot.candidateSteps));
});

Deno.test("adaptive config: trees of our own beside SGLang's steps", () => {
  const { slots } = parseAdaptiveConfig({
    "1": { candidate_steps: [1, 3], candidate_trees: [[5, 4, 8], [3, 2, 6]] },
  });
  assert.deepEqual(slots[0]?.candidateSteps, [1, 3, 5]);
  assert.deepEqual(unionTiers({ slots }).map(tierText), ["1", "3:2:6", "5:4:8"]);
  const fails = (candidate_trees: unknown, message: RegExp) =>
    assert.throws(() => parseAdaptiveConfig({ "4": { candidate_steps: [1], candidate_trees } }), {
      name: /PolicyError|AdaptiveConfigError/,
      message,
    });
  fails([[5, 4]], /^batch size 4: candidate_trees must be a list of \[steps, topk, draft tokens\]/);
  fails("5:4:8", /^batch size 4: candidate_trees must be a list/);
  fails([[2, 2, 9]], /^batch size 4: Cannot verify 9 draft tokens .* allowed are 2 to 7$/);
  fails([[3, 2, 4], [3, 4, 8]], /^batch size 4: candidate_trees has two trees of 3 steps$/);
});
