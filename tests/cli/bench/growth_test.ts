import assert from "node:assert/strict";
import type { GrowthRow } from "../../../src/measure/growth/row.ts";
import type { GrowthEvent, GrowthRequest } from "../../../src/measure/growth/session.ts";
import { runGrowth } from "../../../src/cli/bench/growth.ts";
import { parseArguments } from "../../../src/cli/options/parse.ts";
import { UsageError } from "../../../src/errors.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

const ROW: GrowthRow = {
  format: "eyrie-growth-1",
  model: "m",
  draft: null,
  device: "d",
  webgpu: "builtin",
  kind: "round",
  axis: "context",
  context: 512,
  batch: 1,
  rows: 1,
  runs: 5,
  ms: 5,
  device_ms: 4,
  draft_ms: 0,
  verify_ms: 4,
  extend_ms: 0,
  host_ms: 1,
  bytes: 4e6,
  flops: 1e9,
  floor_ms: 1,
  over_floor: 4,
  tflops: 0.25,
  rows_per_second: 200,
  memory: { weights: 1, kv: 2, scratch: 3, total: 6 },
};
const EVENTS: readonly GrowthEvent[] = [
  { kind: "skipped", what: "m, context 99", why: "too long" },
  { kind: "point", text: "m, context 512", done: 0, total: 2 },
  { kind: "row", row: ROW },
  { kind: "point", text: "m, context 1024", done: 1, total: 2 },
  { kind: "row", row: { ...ROW, context: 1024 } },
];

async function run(
  args: readonly string[],
  { interrupt = false, bandwidth, fails = false, io = fakeIo() }: {
    readonly interrupt?: boolean;
    readonly bandwidth?: number;
    /** After the first row. */
    readonly fails?: boolean;
    readonly io?: FakeIo;
  } = {},
) {
  const invocation = parseArguments(["bench", "--table", "growth", ...args]);
  assert.ok(invocation.command === "bench");
  const requests: GrowthRequest[] = [];
  const code = await runGrowth(invocation.options, {
    io,
    args: ["--table", "growth", ...args],
    bandwidth,
    version: "0",
    now: () => new Date(0),
    located: (model) => Promise.resolve(model),
    async *growth(request) {
      requests.push(request);
      for (const event of EVENTS) {
        yield await Promise.resolve(event);
        if (interrupt && event.kind === "row") return io.interrupt();
        if (fails && event.kind === "row") throw new UsageError("Cannot read the second model");
      }
    },
  });
  return { code, request: requests[0], out: io.out(), err: io.err() };
}

Deno.test("bench --table growth: axes, models and repeats reach the measuring, tables come out", async () => {
  const { code, request, out, err } = await run([]);
  assert.equal(code, 0);
  assert.deepEqual([request?.axes, request?.repeat, request?.models.length], [{}, 5, 1]);
  assert.match(out, /## m: a round by context \(batch 1, rows 1\)/);
  // 4 MB in 1 ms.
  assert.match(out, /bandwidth 4.00 GB\/s \(measured\)/);
  assert.match(out, /left out: m, context 99: too long/);
  assert.equal(
    err,
    "left out: m, context 99: too long\n1 of 2: m, context 512\n2 of 2: m, context 1024\n",
  );

  const flags = [
    "--depth",
    "0,512",
    "--batch-sizes",
    "1,8",
    "--rows",
    "1-4",
  ];
  const { request: other } = await run([...flags, "--model", "random:a.json,random:b.json"], {
    bandwidth: 4260,
  });
  assert.deepEqual(other?.axes, { context: [0, 512], batch: [1, 8], rows: [1, 2, 3, 4] });
  assert.deepEqual(
    other?.models.map(({ model }) => model?.random),
    [{ target: "a.json" }, { target: "b.json" }],
  );
  assert.equal(other?.bandwidth, 4260);
  const named = await run(["--model", "x/a,x/b", "--draft", "none"]);
  assert.deepEqual(named.request?.models.map(({ model }) => model?.model), ["x/a", "x/b"]);
});

Deno.test("bench --table growth: every format, to standard output or a file with the tables beside it", async () => {
  const { out: json } = await run(["--format", "json"]);
  const read = JSON.parse(json);
  assert.deepEqual(read.rows[0], ROW);
  assert.deepEqual(read.skipped, ["m, context 99: too long"]);
  const { out: jsonl } = await run(["--format", "jsonl"]);
  assert.deepEqual(jsonl.trim().split("\n").map((line) => JSON.parse(line).context), [512, 1024]);
  assert.match((await run(["--format", "csv"])).out, /^model,draft,device,webgpu,kind,axis,/);
  const path = await Deno.makeTempFile({ suffix: ".html" });
  try {
    const { out } = await run(["--format", "html", "--output", path]);
    assert.match(out, /^model m/);
    const page = await Deno.readTextFile(path);
    assert.match(page, /eyrie bench --table growth --format html/);
    assert.match(page, /<svg/);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("bench --table growth: after Ctrl+C what was measured is shown", async () => {
  const { code, out } = await run([], { interrupt: true });
  assert.equal(code, 130);
  assert.match(out, /\| +512 \|/);
  assert.ok(!out.includes("1024"));
});

Deno.test("bench --table growth: what a full disk does not take is shown", async () => {
  const io = fakeIo();
  await assert.rejects(run(["--output", "/dev/full"], { io }), { name: "OutputError" });
  assert.match(io.out(), /\| +512 \|/);
});

Deno.test("bench --table growth: a model that fails leaves what was measured before it", async () => {
  const io = fakeIo();
  await assert.rejects(run([], { fails: true, io }), UsageError);
  assert.match(io.out(), /\| +512 \|/);
});

Deno.test("bench --table growth: flags that it does not go with", () => {
  const cases = [
    ["--rows 4", 'Cannot use "--rows": it needs --table growth or --table rewrites'],
    ["--growth --profile", 'Cannot use "--profile" with "--growth": it means --table profile'],
    ["--table growth --num-steps 3", 'Cannot use "--num-steps" with "--table growth": only a'],
    ["--growth --resume x", 'Cannot use "--resume" with "--table growth": only a'],
    [
      "--table growth --model random:a.json,random:b.json --draft random:c.json",
      'Cannot use "--draft random:c.json" with several models: a draft belongs to one',
    ],
    ["--table growth --rows 18", 'Cannot use "--rows 18": '],
  ] as const;
  for (const [args, message] of cases) {
    assert.throws(
      () => parseArguments(["bench", ...args.split(" ")]),
      (error) => error instanceof UsageError && error.message.startsWith(message),
      args,
    );
  }
});
