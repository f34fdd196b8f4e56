import assert from "node:assert/strict";
import { checkTable, runCheck } from "../../src/cli/checkpoint/check.ts";
import type { CheckReport } from "../../src/engine/check/check.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import type { QuantizedCheck, QuantizedReport } from "../../src/engine/check/check_quantized.ts";
import { TASKS } from "../../src/measure/workload/tasks.ts";
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

const QUANTIZED: QuantizedReport = {
  quantize: "q4",
  quantizeDraft: true,
  weightBytes: { plain: 15_500_000, quantized: 5_100_000 },
  prompts: 12,
  positions: 641,
  logits: { rms: 0.104, max: 1.25 },
  klDivergence: 0.00134,
  argmaxAgreement: { same: 610, total: 641 },
  textAgreement: { same: 8, total: 12 },
  acceptLength: { plain: 3.16, quantized: 3.03, numSteps: 3 },
};

function checkOptions(args: readonly string[]) {
  const invocation = parseArguments(["check", ...args]);
  assert.ok(invocation.command === "check");
  return invocation.options;
}

function run(args: string[], report: CheckReport, io = fakeIo()): Promise<number> {
  return runCheck(checkOptions(["--expected", "e.safetensors", ...args]), {
    check: () => Promise.resolve(report),
    checkQuantized: () => assert.fail("expected values were given"),
    checkDraft: () => assert.fail("expected values were given"),
    io,
  });
}

/** Runs the command without expected values. Also returns what the check was asked. */
async function runQuantized(args: string[], report = QUANTIZED, io = fakeIo()) {
  const asked: QuantizedCheck[] = [];
  const code = await runCheck(checkOptions(args), {
    check: () => assert.fail("no expected values were given"),
    checkDraft: () => assert.fail("no draft was given alone"),
    checkQuantized: (options) => {
      asked.push(options);
      return Promise.resolve(report);
    },
    io,
  });
  return { code, io, asked: asked[0] ?? assert.fail() };
}

Deno.test("check: the table", () => {
  assert.equal(
    checkTable({ report: GOOD }, 0.002),
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

Deno.test("check: what a cast of the reference explains is not a fault, and is said", async () => {
  const asked: (boolean | undefined)[] = [];
  const check = ({ roundedBuffers }: { readonly roundedBuffers?: boolean }) => {
    asked.push(roundedBuffers);
    return Promise.resolve(roundedBuffers ? GOOD : BAD);
  };
  const io = fakeIo();
  const others = {
    checkQuantized: () => assert.fail("expected values were given"),
    checkDraft: () => assert.fail("expected values were given"),
  };
  const options = checkOptions(["--expected", "e.safetensors"]);
  assert.equal(await runCheck(options, { check, ...others, io }), 0);
  assert.deepEqual(asked, [false, true]);
  assert.match(io.out(), /^passed: .* with rope's frequencies and\nGemma.*rounded to bf16, .*\n$/m);
  assert.doesNotMatch(io.out(), /PAST/);
});

Deno.test("check: the exact comparison is reported where rounding explains nothing, or fails", async () => {
  for (const second of [BAD, undefined]) {
    const check = ({ roundedBuffers }: { readonly roundedBuffers?: boolean }) =>
      !roundedBuffers
        ? Promise.resolve({ ...BAD, argmaxAgreement: { same: 7, total: 32 } })
        : second
        ? Promise.resolve(second)
        : Promise.reject(new Error("out of memory"));
    const io = fakeIo();
    const others = {
      checkQuantized: () => assert.fail("expected values were given"),
      checkDraft: () => assert.fail("expected values were given"),
    };
    const options = checkOptions(["--expected", "e.safetensors", "--json"]);
    assert.equal(await runCheck(options, { check, ...others, io }), 1);
    const { argmax_agreement, rounded_buffers } = JSON.parse(io.out());
    assert.deepEqual([argmax_agreement.same, rounded_buffers], [7, false]);
  }
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
    rounded_buffers: false,
  });
});

Deno.test("check --quantize: what quantization costs, on a prompt of each task", async () => {
  const { code, io, asked } = await runQuantized(["--quantize", "q4", "--quantize-draft"]);
  assert.equal(code, 0);
  const { model: { quantize, quantizeDraft }, prompts } = asked;
  assert.deepEqual([quantize, quantizeDraft, prompts.length], ["q4", true, TASKS.length]);
  assert.equal(
    io.out(),
    [
      "weights     q4, draft too, 5.1 MB instead of 15.5 MB",
      "compared    641 positions of 12 prompts and their answers",
      "logits      off by 10.40% of their standard deviation (rms), 125.00% at most",
      "divergence  1.34e-3 nats a token",
      "argmax      agrees at 610 of 641 positions",
      "texts       8 of 12 greedy answers are the same",
      "accepted    3.03 tokens a round instead of 3.16, 3 steps",
      "",
    ].join("\n"),
  );
  const without = { ...QUANTIZED, acceptLength: undefined };
  const json = await runQuantized(["--quantize", "q4", "--json"], without);
  const told = JSON.parse(json.io.out());
  assert.deepEqual(told.weight_bytes, { plain: 15_500_000, quantized: 5_100_000 });
  assert.equal(told.accept_length, null);
});

Deno.test("check: something to compare with is needed, drafts are not compared", async () => {
  await assert.rejects(
    runQuantized([]),
    /--expected FILE, --quantize q8\|q4 or --draft DIR is needed/,
  );
  await assert.rejects(async () => await run(["--draft", "d"], GOOD), /Cannot use "--draft" with/);
});

Deno.test("check: a flag that would not be used is refused, the base of a draft reaches the engine", async () => {
  const base = ["--draft-rope-theta", "10000"];
  await assert.rejects(
    runQuantized(["--quantize", "q8", "--tolerance", "0.1"]),
    /^UsageError: Cannot use "--tolerance": it needs --expected$/,
  );
  await assert.rejects(
    async () => await run(base, GOOD),
    /^UsageError: Cannot use "--draft-rope-theta" with "--expected": only the target is compared$/,
  );
  await assert.rejects(
    runQuantized(["--quantize", "q8", "--model", "m", ...base]),
    /^UsageError: Cannot use "--draft-rope-theta": it needs a draft; give --draft MODEL$/,
  );
  const { asked } = await runQuantized(["--quantize", "q8", "--draft", "d", ...base]);
  assert.deepEqual([asked.model.draft, asked.model.draftRopeTheta], ["d", 10000]);
});
