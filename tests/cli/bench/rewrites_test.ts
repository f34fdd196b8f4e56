import assert from "node:assert/strict";
import type { RewriteRow } from "../../../src/measure/rewrites/row.ts";
import type { RewritesRequest } from "../../../src/measure/rewrites/session.ts";
import { runRewrites } from "../../../src/cli/bench/rewrites.ts";
import { parseArguments } from "../../../src/cli/options/parse.ts";
import { UsageError } from "../../../src/errors.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

const ROW: RewriteRow = {
  format: "eyrie-rewrites-1",
  model: "m",
  draft: null,
  device: "d",
  webgpu: "builtin",
  kind: "round",
  context: 512,
  batch: 1,
  rows: 1,
  rewrite: "split_k",
  changes_bits: true,
  clock: "device",
  runs: 5,
  with_ms: 1,
  without_ms: 1.5,
  ratio: 1.5,
  ratio_low: null,
  ratio_high: null,
};

interface Run {
  readonly interrupt?: boolean;
  /** After the first row. */
  readonly fails?: boolean;
  readonly io?: FakeIo;
  readonly terminal?: boolean;
  readonly without?: readonly string[];
}

async function run(
  args: readonly string[],
  { interrupt = false, fails = false, terminal = false, without = [], io = fakeIo({ terminal }) }:
    Run = {},
) {
  const invocation = parseArguments(["bench", "--table", "rewrites", ...args]);
  assert.ok(invocation.command === "bench");
  const requests: RewritesRequest[] = [];
  const code = await runRewrites(invocation.options, {
    io,
    without: new Set(without),
    located: (model) => Promise.resolve(model),
    async *rewrites(request) {
      requests.push(request);
      yield { kind: "point", text: "m, context 512", done: 0, total: 1 };
      yield { kind: "row", row: ROW };
      if (interrupt) return io.interrupt();
      if (fails) throw new UsageError("Cannot read the second model");
      yield { kind: "skipped", what: "m, without x", why: "no kernel" };
      yield await Promise.resolve({ kind: "row", row: { ...ROW, rewrite: "all" } });
    },
  });
  return { code, request: requests[0], out: io.out(), err: io.err() };
}

Deno.test("bench --table rewrites: shapes, models and repeats reach the measuring, a table comes out", async () => {
  const { code, request, out, err } = await run([]);
  assert.equal(code, 0);
  assert.deepEqual(
    [request?.context, request?.batch, request?.rows, request?.chunk, request?.repeat],
    [[512], [1], [1, 4], 256, 5],
  );
  assert.match(out, /\| split_k \| others \| +1\.00 \| +1\.50 \| +1\.50x \|/);
  assert.match(out, /left out: m, without x: no kernel\n$/);
  assert.equal(err, "1 of 1: m, context 512\nleft out: m, without x: no kernel\n");
  const flags = ["--depth", "0,64", "--batch-sizes", "1,8", "--rows", "2", "--repeat", "3"];
  const { request: other } = await run([...flags, "--model", "random:a.json,random:b.json"]);
  assert.deepEqual(
    [other?.context, other?.batch, other?.rows, other?.repeat],
    [[0, 64], [1, 8], [2], 3],
  );
  assert.deepEqual(
    other?.models.map(({ model }) => model?.random),
    [{ target: "a.json" }, { target: "b.json" }],
  );
});

Deno.test("bench --table rewrites: every format, to standard output or a file with the table beside it", async () => {
  const read = JSON.parse((await run(["--format", "json"])).out);
  assert.deepEqual([read.rows[0], read.skipped], [ROW, ["m, without x: no kernel"]]);
  const { out: jsonl } = await run(["--format", "jsonl"]);
  const names = jsonl.trim().split("\n").map((line) => JSON.parse(line).rewrite);
  assert.deepEqual(names, ["split_k", "all"]);
  assert.match((await run(["--format", "csv"])).out, /^model,draft,device,webgpu,kind,context,/);
  const path = await Deno.makeTempFile({ suffix: ".jsonl" });
  try {
    const { out } = await run(["--format", "jsonl", "--output", path]);
    assert.match(out, /\| split_k \|/);
    assert.equal(await Deno.readTextFile(path), jsonl);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("bench --table rewrites: after Ctrl+C what was measured is shown", async () => {
  const { code, out } = await run([], { interrupt: true });
  assert.equal(code, 130);
  assert.match(out, /\| split_k \|/);
  assert.ok(!out.includes("| all"));
  assert.match(out, /\nstopped: an empty field was not reached/);
});

Deno.test("bench --table rewrites: what a full disk does not take is shown", async () => {
  const io = fakeIo();
  await assert.rejects(run(["--output", "/dev/full"], { io }), { name: "OutputError" });
  assert.match(io.out(), /\| split_k /);
});

Deno.test("bench --table rewrites: a model that fails leaves what was measured before it", async () => {
  const io = fakeIo();
  await assert.rejects(run([], { fails: true, io }), UsageError);
  assert.match(io.out(), /\| split_k \|/);
  assert.match(io.out(), /\nstopped: an empty field was not reached/);
});

Deno.test("bench --table rewrites: a terminal has the columns that fit, --format md all of them", async () => {
  const { out } = await run([], { terminal: true });
  assert.ok(out.split("\n").every((line) => line.length <= 80), out);
  assert.match(out, /^split_k +1\.00 +1\.50x$/m);
  assert.match((await run(["--format", "md"], { terminal: true })).out, /1 row: without ms/);
});

Deno.test("bench --table rewrites: rewrites that EYRIE_WITHOUT turns off are named, all of them are refused", async () => {
  const { err } = await run([], { without: ["split_k"] });
  assert.match(
    err,
    /^warning: EYRIE_WITHOUT=split_k: these rewrites are off in every measurement\n/,
  );
  await assert.rejects(
    run([], { without: ["all"] }),
    new UsageError(
      'Cannot use "EYRIE_WITHOUT=all" with "--table rewrites": no rewrite is left to measure',
    ),
  );
});

Deno.test("bench --table rewrites: flags that it does not go with", () => {
  const cases = [
    ["--rewrites --growth", 'Cannot use "--growth" with "--rewrites": it means --table growth'],
    [
      "--table rewrites --num-steps 3",
      'Cannot use "--num-steps" with "--table rewrites": only a measurement of settings takes it',
    ],
    [
      "--table rewrites --format html",
      'Cannot use "--format html" with "--table rewrites": allowed is md, csv, json, jsonl',
    ],
    ["--rewrites --llama-bench", 'Cannot use "--llama-bench" with "--rewrites": it means'],
  ] as const;
  for (const [args, message] of cases) {
    assert.throws(
      () => parseArguments(["bench", ...args.split(" ")]),
      (error) => error instanceof UsageError && error.message.startsWith(message),
      args,
    );
  }
});
