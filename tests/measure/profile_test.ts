import assert from "node:assert/strict";
import { profilePart, withoutNumbers } from "../../src/measure/profile/profile.ts";
import { median } from "../../src/measure/statistics.ts";
import { profileText } from "../../src/measure/profile/profile_text.ts";

Deno.test("labels: numbers that stand for a layer or a step are one star", () => {
  const cases = [
    ["layers.31.qkv", "layers.*.qkv"],
    ["draft_choose.2", "draft_choose.*"],
    ["draft.layers.0.mlp.1", "draft.layers.*.mlp.*"],
    ["head", "head"],
    ["bf16.x2", "bf16.x2"],
  ] as const;
  for (const [label, expected] of cases) assert.equal(withoutNumbers(label), expected);
});

Deno.test("median: the middle, between the middle two, 0 of nothing", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.equal(median([]), 0);
});

const LAUNCHES = [
  { label: "rows", kernel: "rows", bytes: undefined, flops: undefined },
  { label: "layers.0.qkv", kernel: "matmul", bytes: 3e6, flops: 4e6 },
  { label: "layers.1.qkv", kernel: "matmul", bytes: 3e6, flops: 4e6 },
  { label: "layers.2.qkv", kernel: "other", bytes: 1e6, flops: 0 },
];
// Three rounds; the second was disturbed.
const LAUNCH_MS = [[1, 2, 4, 1], [1, 50, 4, 1], [1, 2, 4, 3]];
const VERIFY = {
  part: "verify",
  launches: LAUNCHES,
  launchMs: LAUNCH_MS,
  passMs: [9, 8, 7],
} as const;

Deno.test("dispatches are summed by label and kernel; medians over rounds", () => {
  const { rows, ...part } = profilePart(VERIFY, 2);
  assert.deepEqual(part, {
    part: "verify",
    dispatches: 4,
    kernelMs: 10, // of 8, 56, 10
    passMs: 8,
    floorMs: 3.5, // 7 MB at 2 GB/s
  });
  assert.deepEqual(rows.map(({ label, kernel, calls, ms }) => [label, kernel, calls, ms]), [
    ["layers.*.qkv", "matmul", 2, 6],
    ["rows", "rows", 1, 1],
    ["layers.*.qkv", "other", 1, 1],
  ]);
  const [matmul, tiny] = rows;
  assert.deepEqual(matmul, {
    part: "verify",
    label: "layers.*.qkv",
    kernel: "matmul",
    calls: 2,
    us: 4000,
    ms: 6,
    share: 0.6,
    bytes: 6e6,
    flops: 8e6,
    gbps: 1,
    gflops: 8 / 6,
    ofFloor: 0.5,
  });
  assert.deepEqual([tiny?.bytes, tiny?.gbps, tiny?.gflops, tiny?.ofFloor], [
    null,
    null,
    null,
    null,
  ]);
});

Deno.test("without a bandwidth, or without time, there is no floor and no rate", () => {
  const unknown = profilePart(VERIFY, undefined);
  assert.equal(unknown.floorMs, null);
  assert.ok(unknown.rows.every(({ ofFloor }) => ofFloor === null));
  const still = profilePart({ ...VERIFY, launchMs: [[0, 0, 0, 0]] }, 2);
  assert.ok(still.rows.every(({ gbps, share }) => gbps === null && share === 0));
});

Deno.test("the text: facts, a heading a table, what is not known is blank", () => {
  const table = {
    kind: "round",
    batch: 2,
    numSteps: 3,
    context: 512,
    runs: 12,
    wholeMs: 8,
    parts: [profilePart(VERIFY, 2)],
  } as const;
  const subject = { model: "m", draft: undefined, device: "d", simulated: true };
  const text = profileText([table], { subject, bandwidth: { gbps: 2, given: true } });
  assert.match(text, /^model m, draft none, device d\n\nbandwidth 2.00 GB\/s \(given\)/);
  assert.match(text, /SIMULATED acceptance/);
  assert.match(
    text,
    /## Round: batch 2, 3 draft steps, 512 tokens of context, median of 12: 8.00 ms/,
  );
  assert.match(
    text,
    /\| verify \| layers.\*.qkv \| matmul +\| +2 \| +4000.0 \| +6.000 \| 60.0% \|/,
  );
  assert.match(
    text,
    /\| verify \| rows +\| rows +\| +1 \| +1000.0 \| +1.000 \| 10.0% \| +\| +\| +\| +\|/,
  );
  assert.match(text, /\| verify \| +4 \| 10.000 \| +8.000 \| +-2.000 \| +3.500 \|/);
  const blind = profileText([], { subject, bandwidth: { gbps: null, given: false } });
  assert.match(blind, /bandwidth not known: set EYRIE_BANDWIDTH/);
});
