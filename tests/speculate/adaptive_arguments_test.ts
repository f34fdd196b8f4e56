import assert from "node:assert/strict";
import {
  resolveAdaptive,
  type SpeculationArguments,
} from "../../src/speculate/adaptive_arguments.ts";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { SGLANG_DEFAULT } from "./sglang_default.ts";

const CONFIG = parseAdaptiveConfig(SGLANG_DEFAULT);
const FLAT = parseAdaptiveConfig({ candidate_steps: [1, 3, 7] });

function resolve(given: Partial<SpeculationArguments>) {
  return resolveAdaptive({
    adaptive: true,
    config: CONFIG,
    configGiven: false,
    algorithm: "EAGLE3",
    eagleTopk: undefined,
    numSteps: undefined,
    numDraftTokens: undefined,
    ...given,
  });
}

const ADJUSTED =
  "--speculative-num-draft-tokens is not used: a chain verifies its steps and one row more";

Deno.test("adaptive arguments: the middle of all candidates, a chain", () => {
  assert.deepEqual(resolve({}), {
    policy: "adaptive",
    config: CONFIG,
    eagleTopk: 1,
    numSteps: 3,
    numDraftTokens: 4,
    tiers: [0, 1, 3, 5, 7],
    warnings: [],
  });
  const config = parseAdaptiveConfig({ "1": { candidate_steps: [2, 4] } });
  assert.equal(resolve({ config }).numSteps, 4);
});

Deno.test("adaptive arguments: initial steps must be a candidate of some slot", () => {
  for (const numSteps of [0, 1, 3, 5, 7]) {
    const { numSteps: found, numDraftTokens, warnings } = resolve({ numSteps });
    assert.deepEqual([found, numDraftTokens, warnings], [numSteps, numSteps + 1, []]);
  }
  assert.throws(() => resolve({ numSteps: 2 }), {
    name: "AdaptiveConfigError",
    message: 'Cannot use "--speculative-num-steps 2": ' +
      "the adaptive config's steps are 0, 1, 3, 5, 7",
  });
});

Deno.test("adaptive arguments: a flat config takes other initial steps in", () => {
  const resolved = resolve({ config: FLAT, numSteps: 2 });
  assert.deepEqual([resolved.numSteps, resolved.tiers], [2, [1, 2, 3, 7]]);
  assert.deepEqual(resolved.warnings, [
    "the adaptive config's steps 1, 3, 7 take in 2, which --speculative-num-steps starts with",
  ]);
  assert.deepEqual(resolve({ config: FLAT, numSteps: 7 }).warnings, []);
  assert.throws(
    () => resolve({ config: FLAT, numSteps: 0 }),
    /Cannot use "--speculative-num-steps 0"/,
  );
});

Deno.test("adaptive arguments: num_draft_tokens follows num_steps, with a warning", () => {
  for (const adaptive of [true, false]) {
    for (const numDraftTokens of [undefined, 4]) {
      assert.deepEqual(resolve({ adaptive, numDraftTokens }).warnings, []);
    }
    const resolved = resolve({ adaptive, numDraftTokens: 8 });
    assert.deepEqual([resolved.numDraftTokens, resolved.warnings], [4, [ADJUSTED]]);
  }
});

Deno.test("adaptive arguments: what it is not for falls back to static", () => {
  const cases: [Partial<SpeculationArguments>, string, number[]][] = [
    [{ algorithm: "NGRAM" }, "only EAGLE, EAGLE3 and NEXTN adapt, not NGRAM", [3]],
    [{ algorithm: "NONE" }, "only EAGLE, EAGLE3 and NEXTN adapt, not NONE", [0]],
    [{ eagleTopk: 4 }, "only chains of drafts adapt, not --speculative-eagle-topk 4", [3]],
    [{ eagleTopk: 4, numSteps: 2 }, "only chains of drafts adapt, not --speculative-eagle-topk 4", [
      2,
    ]],
    [
      { algorithm: "STANDALONE", eagleTopk: 4 },
      "only EAGLE, EAGLE3 and NEXTN adapt, not STANDALONE",
      [3],
    ],
  ];
  for (const [given, reason, tiers] of cases) {
    const resolved = resolve(given);
    assert.equal(resolved.policy, "fixed");
    assert.deepEqual(resolved.tiers, tiers);
    assert.deepEqual(resolved.warnings, [
      `the number of draft steps stays fixed: ${reason}`,
    ]);
  }
  for (const algorithm of ["EAGLE", "EAGLE3"]) {
    assert.equal(resolve({ algorithm, eagleTopk: 1 }).policy, "adaptive");
  }
});

Deno.test("adaptive arguments: static", () => {
  const given = { adaptive: false, numSteps: 5 };
  assert.deepEqual(resolve(given), {
    policy: "fixed",
    eagleTopk: 1,
    numSteps: 5,
    numDraftTokens: 6,
    tiers: [5],
    warnings: [],
  });
  assert.equal(resolve({ ...given, configGiven: true }).warnings.length, 1);
  assert.equal(resolve({ ...given, eagleTopk: 4, numDraftTokens: 8 }).numDraftTokens, 8);
});
