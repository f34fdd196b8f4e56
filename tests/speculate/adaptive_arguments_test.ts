import assert from "node:assert/strict";
import {
  resolveAdaptive,
  type SpeculationArguments,
} from "../../src/speculate/adaptive_arguments.ts";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { SGLANG_DEFAULT } from "./sglang_default.ts";
import { chain, chains, tierText } from "../../src/speculate/round_shape.ts";

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
    architecture: "LlamaForCausalLM",
    ...given,
  });
}

const ADJUSTED =
  "--speculative-num-draft-tokens is not used: a chain verifies its steps and one row more";

Deno.test("adaptive arguments: the middle of all candidates, a chain", () => {
  assert.deepEqual(resolve({}), {
    policy: "adaptive",
    config: CONFIG,
    tier: chain(3),
    tiers: chains([0, 1, 3, 5, 7]),
    warnings: [],
  });
  const config = parseAdaptiveConfig({ "1": { candidate_steps: [2, 4] } });
  assert.deepEqual(resolve({ config }).tier, chain(4));
});

Deno.test("adaptive arguments: initial steps must be a candidate of some slot", () => {
  for (const numSteps of [0, 1, 3, 5, 7]) {
    const { tier, warnings } = resolve({ numSteps });
    assert.deepEqual([tier, warnings], [chain(numSteps), []]);
  }
  assert.throws(() => resolve({ numSteps: 2 }), {
    name: "AdaptiveConfigError",
    message: 'Cannot use "--num-steps 2": ' +
      "the adaptive config's steps are 0, 1, 3, 5, 7",
  });
});

Deno.test("adaptive arguments: a flat config takes other initial steps in", () => {
  const resolved = resolve({ config: FLAT, numSteps: 2 });
  assert.deepEqual([resolved.tier, resolved.tiers], [chain(2), chains([1, 2, 3, 7])]);
  assert.deepEqual(resolved.warnings, [
    "the adaptive config's steps 1, 3, 7 take in 2, which --num-steps starts with",
  ]);
  assert.deepEqual(resolve({ config: FLAT, numSteps: 7 }).warnings, []);
  assert.throws(
    () => resolve({ config: FLAT, numSteps: 0 }),
    /Cannot use "--num-steps 0"/,
  );
});

Deno.test("adaptive arguments: num_draft_tokens follows num_steps, with a warning", () => {
  for (const adaptive of [true, false]) {
    for (const numDraftTokens of [undefined, 4]) {
      assert.deepEqual(resolve({ adaptive, numSteps: 3, numDraftTokens }).warnings, []);
    }
    const resolved = resolve({ adaptive, numSteps: 3, numDraftTokens: 8 });
    assert.deepEqual([resolved.tier, resolved.warnings], [chain(3), [ADJUSTED]]);
  }
});

Deno.test("adaptive arguments: what it is not for falls back to static", () => {
  const cases: [Partial<SpeculationArguments>, string, string[]][] = [
    [{ algorithm: "NGRAM" }, "only EAGLE, EAGLE3 and NEXTN adapt, not NGRAM", ["3"]],
    [{ algorithm: "NONE" }, "only EAGLE, EAGLE3 and NEXTN adapt, not NONE", ["0"]],
    [{ eagleTopk: 4, numSteps: 2 }, "only chains of drafts adapt, not --speculative-eagle-topk 4", [
      "2:4:8",
    ]],
    [
      { algorithm: "STANDALONE", eagleTopk: 4, numSteps: 3 },
      "only EAGLE, EAGLE3 and NEXTN adapt, not STANDALONE",
      ["3:4:8"],
    ],
  ];
  for (const [given, reason, tiers] of cases) {
    const resolved = resolve(given);
    assert.equal(resolved.policy, "fixed");
    assert.deepEqual(resolved.tiers.map(tierText), tiers);
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
    tier: chain(5),
    tiers: [chain(5)],
    warnings: [],
  });
  assert.equal(resolve({ ...given, configGiven: true }).warnings.length, 1);
  const tree = resolve({ ...given, eagleTopk: 4, numDraftTokens: 8 });
  assert.deepEqual(tree.tiers, [{ depth: 5, width: 4, rows: 8 }]);
  assert.equal(tierText(resolve({ ...given, eagleTopk: 2 }).tier), "5:2:8");
  assert.equal(tierText(resolve({ ...given, eagleTopk: 4, numSteps: 0 }).tier), "0");
});

Deno.test("adaptive arguments: topk and draft tokens need a number of steps", () => {
  for (const given of [{ eagleTopk: 4 }, { numDraftTokens: 8 }, { eagleTopk: 1 }]) {
    assert.throws(() => resolve({ adaptive: false, ...given }), {
      message: /^Cannot use --speculative-\S+ without --num-steps: /,
    });
  }
  const none = resolve({ adaptive: false, algorithm: "NONE", eagleTopk: 4 });
  assert.equal(tierText(none.tier), "0");
});

Deno.test("adaptive arguments: trees in a config", () => {
  const config = parseAdaptiveConfig({
    "1": { candidate_steps: [1, 3], candidate_trees: [[5, 4, 8]] },
    "8": { candidate_trees: [[3, 2, 6]], candidate_steps: [0] },
    "16": { candidate_trees: [[2, 2, 4]] },
  });
  const { tiers, tier } = resolve({ config });
  assert.deepEqual(tiers.map(tierText), ["0", "1", "2:2:4", "3", "3:2:6", "5:4:8"]);
  assert.equal(tier.depth, 2);
});
