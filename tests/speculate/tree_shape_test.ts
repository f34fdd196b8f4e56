import assert from "node:assert/strict";
import { distinctTiers, isChain, tierText } from "../../src/speculate/round_shape.ts";
import { automaticTree, treeNamed, treeShape } from "../../src/speculate/tree_shape.ts";

Deno.test("tree shape: EAGLE's spelling counts levels after the first, and ours is short", () => {
  assert.deepEqual(treeNamed("total_token=60,depth=7,top_k=10"), {
    depth: 8,
    width: 10,
    rows: 60,
  });
  assert.deepEqual(treeNamed("depth=4"), { depth: 5, width: 10, rows: 60 });
  assert.deepEqual(treeNamed("5:4:8"), { depth: 5, width: 4, rows: 8 });
  for (const text of ["", "5:4", "depth=x", "total=3"]) {
    assert.throws(() => treeNamed(text), { name: "PolicyError", message: /^Cannot read "/ });
  }
});

Deno.test("tree shape: rows default to 8, and end where candidates do", () => {
  const shape = (depth: number, width: number, rows?: number) =>
    tierText(treeShape({ depth, width, rows }));
  assert.equal(shape(5, 4), "5:4:8");
  assert.equal(shape(9, 2), "9:2:10");
  assert.equal(shape(1, 4), "1:4:5");
  assert.equal(shape(2, 2, 7), "2:2:7");
  assert.throws(() => shape(2, 2, 8), /Cannot verify 8 draft tokens .* allowed are 2 to 7$/);
  assert.throws(() => shape(8, 10, 65), /allowed are 2 to 64$/);
  assert.throws(() => shape(17, 2), /steps are 1 to 16, topk is 1 to 16$/);
  assert.throws(() => shape(3, 17), /topk is 1 to 16$/);
});

Deno.test("tiers: their texts, and each once in rising order", () => {
  const tiers = ["5:4:8", "3:2:6", "3:2:5"].map(treeNamed);
  assert.deepEqual(distinctTiers([...tiers, ...tiers]).map(tierText), ["3:2:5", "3:2:6", "5:4:8"]);
  assert.equal(tierText(automaticTree("EAGLE3", "LlamaForCausalLM")), "5:4:8");
  assert.ok(isChain(automaticTree("EAGLE3", "Qwen3ForCausalLM")));
  assert.ok(isChain(automaticTree("STANDALONE", "LlamaForCausalLM")));
});
