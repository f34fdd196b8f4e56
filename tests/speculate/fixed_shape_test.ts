import assert from "node:assert/strict";
import { fixedShape, type ShapeArguments } from "../../src/speculate/fixed_shape.ts";
import { chain, tierText } from "../../src/speculate/round_shape.ts";

function shape(given: Partial<ShapeArguments>) {
  return fixedShape({ algorithm: "EAGLE3", architecture: "LlamaForCausalLM", ...given });
}

const ADJUSTED =
  "the draft tokens of --draft-tree are not used: a chain verifies its steps and one row more";

Deno.test("fixed shape: a chain of 3 steps, or of those that are asked for; none without a draft", () => {
  assert.deepEqual(shape({}), { tier: chain(3), warnings: [] });
  assert.deepEqual(shape({ numSteps: 5 }), { tier: chain(5), warnings: [] });
  assert.deepEqual(shape({ algorithm: "NONE" }).tier, chain(0));
});

Deno.test("fixed shape: num_draft_tokens follows num_steps, with a warning", () => {
  assert.deepEqual(shape({ numSteps: 3, numDraftTokens: 4 }).warnings, []);
  const { tier, warnings } = shape({ numSteps: 3, numDraftTokens: 8 });
  assert.deepEqual([tier, warnings], [chain(3), [ADJUSTED]]);
});

Deno.test("fixed shape: topk makes a tree", () => {
  const of = (given: Partial<ShapeArguments>) => tierText(shape(given).tier);
  assert.equal(of({ numSteps: 5, eagleTopk: 4, numDraftTokens: 8 }), "5:4:8");
  assert.equal(of({ numSteps: 5, eagleTopk: 2 }), "5:2:8");
  assert.equal(of({ numSteps: 0, eagleTopk: 4 }), "0");
  assert.equal(of({ tree: { depth: 3, width: 2, rows: 6 } }), "3:2:6");
  assert.equal(of({ tree: "auto" }), "5:4:8");
  assert.equal(of({ tree: "auto", algorithm: "NONE" }), "0");
});

Deno.test("fixed shape: parts of a tree need a number of steps, a whole one has its own", () => {
  for (const given of [{ eagleTopk: 4 }, { numDraftTokens: 8 }, { eagleTopk: 1 }]) {
    assert.throws(() => shape(given), {
      name: "PolicyError",
      message: /^Cannot use "--draft-tree (topk|tokens)=\d" without --num-steps: /,
    });
  }
  assert.equal(tierText(shape({ algorithm: "NONE", eagleTopk: 4 }).tier), "0");
  assert.throws(() => shape({ tree: "auto", numSteps: 3 }), {
    message: 'Cannot use "--num-steps 3" with --draft-tree: the tree has its own steps',
  });
});
