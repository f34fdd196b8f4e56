import assert from "node:assert/strict";
import { checkTable, runCheck } from "../../src/cli/check.ts";
import type { CheckReport } from "../../src/engine/check.ts";
import { parseArguments } from "../../src/cli/parse.ts";
import { fakeIo } from "./fake.ts";

const GOOD: CheckReport = {
  tensors: [
    { name: "hidden_states.0", maxAbs: 0, maxRel: 0, relToStd: 0, ok: true },
    { name: "logits", maxAbs: 0.00123, maxRel: 0.5, relToStd: 0.0004, ok: true },
  ],
  argmaxAgreement: { same: 31, total: 32 },
  greedyAgreement: { same: 8, total: 8 },
  ok: true,
};

const BAD: CheckReport = {
  ...GOOD,
  tensors: [{ name: "logits", maxAbs: 1, maxRel: NaN, relToStd: 0.3, ok: false }],
  greedyAgreement: undefined,
  ok: false,
};

function run(args: string[], report: CheckReport, io = fakeIo()): Promise<number> {
  const invocation = parseArguments(["check", "--expected", "e.safetensors", ...args]);
  assert.ok(invocation.command === "check");
  return runCheck(invocation.options, { check: () => Promise.resolve(report), io });
}

Deno.test("check: the table", () => {
  assert.equal(
    checkTable(GOOD, 0.002),
    [
      "tensor           max abs  max rel   of std",
      "hidden_states.0  0.00e+0  0.00e+0  0.00e+0  ok",
      "logits           1.23e-3  5.00e-1  4.00e-4  ok",
      "",
      "argmax agrees at 31 of 32 positions",
      "greedy agrees at 8 of 8 tokens",
      "passed: every error is within 0.002 standard deviations",
      "",
    ].join("\n"),
  );
});

Deno.test("check: exit code and verdict follow the report", async () => {
  const good = fakeIo();
  assert.equal(await run([], GOOD, good), 0);
  const bad = fakeIo();
  assert.equal(await run([], BAD, bad), 1);
  assert.match(bad.out(), /NaN {2}3\.00e-1 {2}PAST TOLERANCE/);
  assert.match(bad.out(), /FAILED: tolerance is 0\.002 standard deviations\n$/);
  assert.doesNotMatch(bad.out(), /greedy/);
});

Deno.test("check --json", async () => {
  const io = fakeIo();
  assert.equal(await run(["--json", "--tolerance", "0.5"], BAD, io), 1);
  assert.deepEqual(JSON.parse(io.out()), {
    ok: false,
    tolerance: 0.5,
    tensors: [{ name: "logits", max_abs: 1, max_rel: null, rel_to_std: 0.3, ok: false }],
    argmax_agreement: { same: 31, total: 32 },
    greedy_agreement: null,
  });
});
