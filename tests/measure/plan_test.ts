import { deepEqual, equal, notDeepEqual } from "node:assert/strict";
import { armsOf, blockOrder, caseText, cellSpec, warmUpSpec } from "../../src/measure/plan.ts";

const CASE = { workload: "phases", batch: 2, outputTokens: 64, temperature: 0, depth: 0 };

Deno.test("armsOf: plain twice, steps in order, 0 steps are plain", () => {
  const arms = armsOf({ numSteps: [3, 0, 1, 3] });
  deepEqual(arms.map(({ label }) => label), [
    "plain",
    "plain (A/A)",
    "1 step",
    "3 steps",
  ]);
  deepEqual(arms[1]?.setting, { kind: "plain" });
  deepEqual(arms[2]?.setting, { kind: "static", numSteps: 1 });
});

Deno.test("armsOf: a policy each text, once", () => {
  const policy = { policy: "static", options: { num_steps: 2 } };
  const [, , ...arms] = armsOf({
    numSteps: [],
    policies: [["static:num_steps=2", policy], ["static", { policy: "static" }], [
      "static:num_steps=2",
      policy,
    ]],
  });
  deepEqual(arms, [
    { label: "policy static:num_steps=2", setting: { kind: "policy", policy } },
    { label: "policy static", setting: { kind: "policy", policy: { policy: "static" } } },
  ]);
});

Deno.test("blockOrder: a seeded permutation, another one in each block", () => {
  const arms = armsOf({ numSteps: [1, 2, 3, 4, 5] });
  const order = (block: number, seed = 1) => blockOrder(arms, { seed, caseIndex: 0, block });
  deepEqual(order(0), order(0));
  notDeepEqual(order(0), order(1));
  notDeepEqual(order(0), order(0, 2));
  deepEqual(new Set(order(3)), new Set(arms));
});

Deno.test("blockOrder: every arm comes first about as often", () => {
  const arms = armsOf({ numSteps: [1, 3] });
  const counts = new Map<string, number>();
  for (let block = 0; block < 4000; block++) {
    const label = blockOrder(arms, { seed: 5, caseIndex: 1, block })[0]?.label ?? "";
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  // 1000 each, standard deviation 27
  for (const [label, count] of counts) {
    equal(Math.abs(count - 1000) < 120, true, `${label} ${count}`);
  }
  equal(counts.size, 4);
});

Deno.test("cells of a block share their seed, whatever setting and batch size", () => {
  const plain = cellSpec(CASE, { setting: { kind: "plain" }, block: 2, seed: 9 });
  const fixed = { kind: "static", numSteps: 3 } as const;
  const other = cellSpec({ ...CASE, batch: 8 }, { setting: fixed, block: 2, seed: 9 });
  equal(plain.seed, other.seed);
  equal(plain.repeat, 2);
  const next = cellSpec(CASE, { setting: { kind: "plain" }, block: 3, seed: 9 });
  equal(next.seed === plain.seed, false);
});

Deno.test("the warm-up is short and is no block", () => {
  const { repeat, outputTokens } = warmUpSpec(CASE, { kind: "plain" }, 1);
  deepEqual({ repeat, outputTokens }, { repeat: -1, outputTokens: 16 });
});

Deno.test("caseText", () => {
  equal(caseText(CASE), "batch 2, 64 output tokens, temperature 0");
  equal(
    caseText({ ...CASE, promptTokens: 128, depth: 1024 }),
    "batch 2, 128 prompt tokens, 64 output tokens, temperature 0, depth 1024",
  );
});

Deno.test("armsOf: trees after chains, each once", () => {
  const tier = { depth: 5, width: 4, rows: 8 };
  const arms = armsOf({
    numSteps: [3],
    trees: [tier, { ...tier }],
    policies: [["a", { policy: "ema" }]],
  });
  deepEqual(arms.slice(2).map(({ label }) => label), ["3 steps", "tree 5:4:8", "policy a"]);
  deepEqual(arms[3]?.setting, { kind: "tree", tier });
});
