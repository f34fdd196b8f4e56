import assert from "node:assert/strict";
import { keepingCells, llamaPlans, type LlamaRow, llamaRows } from "../../../src/measure/llama.ts";
import { armsOf } from "../../../src/measure/plan.ts";
import { sweep } from "../../../src/measure/sweep.ts";
import { openWorkload } from "../../../src/measure/workload/workload.ts";
import type { BenchRequest } from "../../../src/measure/runner.ts";
import { runLlama } from "../../../src/cli/bench/llama.ts";
import { parseArguments } from "../../../src/cli/options/parse.ts";
import { UsageError } from "../../../src/errors.ts";
import { fakeCell, fakeSession } from "../../measure/fake.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

async function run(...args: string[]) {
  return await runOn(fakeSession(), fakeIo(), ...args);
}

async function runOn(fake: ReturnType<typeof fakeSession>, io: FakeIo, ...args: string[]) {
  const invocation = parseArguments(["bench", "--table", "llama-bench", ...args]);
  assert.ok(invocation.command === "bench");
  const session = {
    ...fake,
    size: { bytes: 3.56 * 2 ** 30, parameters: 6.74e9 },
  };
  const requests: BenchRequest[] = [];
  const open = (request: BenchRequest) => {
    requests.push(request);
    return Promise.resolve(session);
  };
  const code = await runLlama(invocation.options, { open, io, args, version: "0" });
  return { code, request: requests[0], cells: session.cells, out: io.out() };
}

Deno.test("bench --table llama-bench: pp512 and tg128, plain and with each setting, as mean and deviation", async () => {
  const { code, request, cells, out } = await run("--repeat", "3", "--num-steps", "0,3");
  assert.equal(code, 0);
  assert.deepEqual(
    request?.cases.map(({ workload, promptTokens, outputTokens, batch }) => [
      ...[workload, promptTokens, outputTokens, batch],
    ]),
    [["random", 512, 1, 1], ["fledgling:all", undefined, 128, 1]],
  );
  const prompts = cells.filter(({ promptTokens }) => promptTokens === 512);
  assert.ok(
    prompts.every(({ setting }) => setting.kind === "plain"),
    "no draft is measured of pp512",
  );
  const lines = out.trimEnd().split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  assert.deepEqual(lines[0]?.slice(1, -1), ["model", "size", "params", "backend", "test", "t/s"]);
  assert.deepEqual(lines.slice(2).map((line) => line.slice(1, 6)), [
    ["fake-1B", "3.56 GiB", "6.74 B", "Fake GPU, vulkan", "pp512"],
    ["fake-1B", "3.56 GiB", "6.74 B", "Fake GPU, vulkan", "tg128"],
    ["fake-1B", "3.56 GiB", "6.74 B", "Fake GPU, vulkan", "tg128, 3 steps"],
  ]);
  for (const line of lines.slice(2)) assert.match(line[6] ?? "", /^\d+\.\d\d ± \d+\.\d\d$/);
});

Deno.test("bench --table llama-bench: rates are of the prompt alone and of the answer after its first token", async () => {
  const { out } = await run("--repeat", "2", "--num-steps", "0", "--format", "json");
  const [prompt, answer, ...more] = JSON.parse(out) as LlamaRow[];
  assert.deepEqual(more, []);
  // The made-up prompts take 25 ms, a twentieth more or less.
  for (const rate of prompt?.samples_ts ?? []) assert.ok(rate > 19_000 && rate < 22_000, `${rate}`);
  assert.equal(prompt?.samples_ts.length, 2);
  assert.equal(answer?.samples_ts.length, 2);
  assert.ok((answer?.avg_ts ?? 0) > 0 && (answer?.stddev_ts ?? -1) >= 0);
});

Deno.test("bench --table llama-bench: flags that its tests decide are refused", () => {
  for (
    const flags of [
      ["--batch-sizes", "2"],
      ["--output-tokens", "9"],
      ["--growth"],
      ["--resume", "f"],
      ["--format", "html"],
      ["--webgpu", "builtin,dawn"],
    ]
  ) {
    assert.throws(() => parseArguments(["bench", "--table", "llama-bench", ...flags]), {
      name: "UsageError",
      message: /with "--table llama-bench"/,
    });
  }
});

const ARMS = armsOf({ numSteps: [0] });

Deno.test("bench --table llama-bench: what a full disk does not take is shown", async () => {
  const io = fakeIo();
  await assert.rejects(runOn(fakeSession(), io, "--output", "/dev/full"), { name: "OutputError" });
  assert.match(io.out(), /pp512/);
});

Deno.test("bench --table llama-bench: answers that fail leave the rate of the prompt", async () => {
  const io = fakeIo();
  const session = fakeSession((spec) =>
    spec.promptTokens === 512
      ? Promise.resolve(fakeCell(spec))
      : Promise.reject(new UsageError("the prompt has 3003 tokens"))
  );
  await assert.rejects(runOn(session, io, "--repeat", "2"), UsageError);
  assert.match(io.out(), /\| pp512 \|/);
});

/** Rows of a session that measures answers alone, until `stop` stops it. */
async function answersOf(runCell: Parameters<typeof fakeSession>[0], stop: AbortController) {
  const workload = openWorkload("fledgling:all", () => "");
  const plans = llamaPlans(
    { cases: [], arms: ARMS, blocks: 3, seed: 1 },
    workload,
  );
  const { session, cells } = keepingCells(fakeSession(runCell));
  const limits = { present: new Map(), signal: stop.signal };
  for await (const _ of sweep(plans.answer, session, limits));
  return llamaRows(plans, session, cells);
}

Deno.test("bench --table llama-bench: Ctrl+C leaves out the answers that it cut", async () => {
  const stop = new AbortController();
  const [answer] = await answersOf((spec, _, turn) => {
    if (spec.repeat === 1 && spec.setting === ARMS[0]?.setting) stop.abort();
    return Promise.resolve(fakeCell(spec, turn));
  }, stop);
  assert.equal(answer?.samples_ts.length, 1);
});

Deno.test("bench --table llama-bench: answers of one token have no rate", async () => {
  const rows = await answersOf((spec, _, turn) => {
    const cell = fakeCell(spec, turn);
    const requests = cell.requests.map((one) => ({ ...one, answer: { tokens: 1, ms: 0 } }));
    return Promise.resolve({ ...cell, requests });
  }, new AbortController());
  assert.deepEqual(rows, []);
});
