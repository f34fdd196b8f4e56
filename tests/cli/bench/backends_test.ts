import assert from "node:assert/strict";
import { refuseMissing, runBackends, without } from "../../../src/cli/bench/backends.ts";
import type { BenchChild } from "../../../src/cli/bench/child.ts";
import { openTurns, TURN_LINE } from "../../../src/cli/bench/turns.ts";
import { parseArguments } from "../../../src/cli/options/parse.ts";
import { UsageError } from "../../../src/errors.ts";
import { sampleRows, SUBJECT } from "../../measure/fake.ts";
import { fakeIo } from "../fake.ts";

const [BUILTIN, DAWN] = await Promise.all(
  (["builtin", "dawn"] as const).map((webgpu) =>
    sampleRows({
      batch: [1],
      numSteps: [0, 3],
      blocks: 3,
      subject: { ...SUBJECT, webgpu, device: `Fake GPU by ${webgpu}` },
    })
  ),
);

interface Script {
  /** The process prints blocks, then rows, and then ends with the code. */
  readonly blocks: number;
  readonly rows?: readonly unknown[];
  readonly said?: string;
  readonly code?: number;
}

/** Processes that log when they run. The n-th start plays the n-th of `scripts`. */
function processes(scripts: readonly Script[]) {
  const log: string[] = [];
  const started: (readonly string[])[] = [];
  const start = (args: readonly string[], onLine: (line: string) => void): BenchChild => {
    const { blocks, rows = [], said, code = 0 } = scripts[started.length] ?? { blocks: 0 };
    const name = args[args.indexOf("--webgpu") + 1] ?? "";
    started.push(args);
    let go = Promise.withResolvers<void>();
    async function* lines() {
      for (let block = 0; block < blocks; block++) {
        yield TURN_LINE;
        await go.promise;
        go = Promise.withResolvers();
        log.push(`${name} ${block}`);
        onLine(`${block + 1} of ${blocks}: measured`);
      }
      for (const row of rows) yield JSON.stringify(row);
      if (said !== undefined) onLine(said);
      if (code !== 0) onLine("eyrie: Cannot load it");
    }
    return {
      lines: lines(),
      go: () => Promise.resolve(go.resolve()),
      interrupt: () => void log.push(`${name} interrupted`),
      ended: Promise.resolve(code),
    };
  };
  return { log, started, start };
}

async function run(scripts: readonly Script[], args: readonly string[] = ["--num-steps", "0,3"]) {
  const io = fakeIo();
  const typed = ["--webgpu", "builtin,dawn", ...args];
  const invocation = parseArguments(["bench", ...typed]);
  assert.ok(invocation.command === "bench");
  const { log, started, start } = processes(scripts);
  const code = await runBackends(invocation.options, {
    start,
    io,
    args: typed,
    version: "0",
    now: () => new Date(0),
  });
  return { code, log, started, out: io.out(), err: io.err() };
}

Deno.test("two WebGPUs: blocks take turns, rows of both are in one table", async () => {
  const { code, log, started, out, err } = await run([
    { blocks: 3, rows: BUILTIN ?? [] },
    { blocks: 3, rows: DAWN ?? [] },
  ]);
  assert.equal(code, 0);
  assert.deepEqual(log, [0, 1, 2].flatMap((block) => [`builtin ${block}`, `dawn ${block}`]));
  assert.deepEqual(
    started,
    ["builtin", "dawn"].map((name) => [
      ...["bench", "--num-steps", "0,3"],
      ...["--webgpu", name, "--format", "jsonl"],
    ]),
  );
  assert.match(out, /device Fake GPU by builtin and Fake GPU by dawn/);
  assert.match(out, /\| webgpu {2}\| batch \|/);
  assert.match(out, /\| dawn over builtin \[95 %\] \|/);
  assert.match(out, /batch 1, webgpu dawn: /);
  assert.match(err, /^builtin: 1 of 3: measured\ndawn: 1 of 3: measured\n/);
});

Deno.test("two WebGPUs: one that cannot be opened while the other is open follows it", async () => {
  const { code, log, started, out, err } = await run([
    { blocks: 2, rows: BUILTIN ?? [] },
    { blocks: 0, rows: (DAWN ?? []).slice(0, 1), code: 2 },
    { blocks: 2, rows: DAWN ?? [] },
  ]);
  assert.equal(code, 0);
  assert.equal(started.length, 3);
  assert.deepEqual(log, ["builtin 0", "builtin 1", "dawn 0", "dawn 1"]);
  const linesOf = (name: string) => out.match(RegExp(`^\\| ${name} +\\| +1 \\|`, "gm"))?.length;
  assert.equal(linesOf("dawn"), linesOf("builtin"));
  assert.match(
    err,
    /warning: dawn cannot be opened while the other WebGPU is open: .* not in turns/,
  );
  assert.match(out, /dawn over builtin/);
});

Deno.test("two WebGPUs: one that fails leaves the rows of the other and its code", async () => {
  const { code, out, err } = await run([
    { blocks: 1, rows: BUILTIN ?? [] },
    { blocks: 0, code: 2 },
    { blocks: 0, code: 2 },
  ]);
  assert.equal(code, 2);
  assert.match(err, /dawn: eyrie: Cannot load it/);
  assert.match(out, /plain/);
  assert.ok(!out.includes("dawn over builtin"));
});

Deno.test("two WebGPUs: a growth of each one after the other", async () => {
  const row = {
    format: "eyrie-growth-1",
    model: "m",
    draft: null,
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
    memory: { total: 6 },
  };
  const rowOf = (webgpu: string) => ({ ...row, webgpu, device: webgpu });
  const { code, started, out } = await run(
    [
      { blocks: 0, rows: [rowOf("builtin")] },
      { blocks: 0, rows: [rowOf("dawn")], said: "left out: m, context 32768: no room" },
    ],
    ["--table", "growth", "--rows", "1"],
  );
  assert.deepEqual([code, started.length], [0, 2]);
  assert.ok(started.every((args) => args.includes("growth")));
  assert.match(out, /## m, builtin: a round by context.*## m, dawn: a round by context/s);
  assert.match(out, /dawn: m, context 32768: no room/);
});

Deno.test("two WebGPUs: rewrites of each one after the other, a table each", async () => {
  const row = {
    format: "eyrie-rewrites-1",
    model: "m",
    draft: null,
    kind: "round",
    context: 512,
    batch: 1,
    rows: 1,
    rewrite: "all",
    changes_bits: true,
    clock: "device",
    runs: 5,
    with_ms: 1,
    without_ms: 2,
    ratio: 2,
    ratio_low: null,
    ratio_high: null,
  };
  const rowOf = (webgpu: string) => ({ ...row, webgpu, device: webgpu });
  const { code, started, out } = await run(
    [
      { blocks: 0, rows: [rowOf("builtin")] },
      { blocks: 0, rows: [rowOf("dawn")], said: "left out: m, prompt of 256: no room" },
    ],
    ["--table", "rewrites"],
  );
  assert.deepEqual([code, started.length], [0, 2]);
  assert.match(out, /## m, draft none, builtin, .*## m, draft none, dawn, /s);
  assert.match(out, /left out: dawn: m, prompt of 256: no room/);
});

Deno.test("flags of one process are left out, with or without their value in one word", () => {
  const flags = ["--format", "--webgpu", "--wide", "--force"];
  const typed = [
    "--format",
    "html",
    "--wide",
    "--force",
    "--repeat",
    "3",
    "--webgpu=builtin,dawn",
    "-q",
  ];
  assert.deepEqual(without(typed, flags), ["--repeat", "3", "-q"]);
});

Deno.test("which WebGPUs, and what is of one alone", () => {
  const cases = [
    ["--webgpu wgpu", 'Cannot use "--webgpu wgpu": allowed is builtin, dawn or builtin,dawn'],
    ["--webgpu dawn,dawn", 'Cannot use "--webgpu dawn,dawn": allowed is'],
    [
      "--webgpu builtin,dawn --table profile",
      'Cannot use "--webgpu builtin,dawn" with "--table profile": ',
    ],
    ["--webgpu dawn,builtin --resume x", 'Cannot use "--resume" with "--webgpu dawn,builtin": '],
  ] as const;
  for (const [args, message] of cases) {
    assert.throws(
      () => parseArguments(["bench", ...args.split(" ")]),
      (error) => error instanceof UsageError && error.message.startsWith(message),
      args,
    );
  }
  const one = parseArguments(["bench", "--webgpu", "dawn"]);
  assert.ok(one.command === "bench");
  assert.deepEqual(one.options.webgpu, ["dawn"]);
});

Deno.test("a turn is said and waited for; Ctrl+C ends the wait", async () => {
  const io = fakeIo();
  const { turn } = openTurns(io);
  let began = false;
  const first = turn().then(() => began = true);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual([io.out(), began], [`${TURN_LINE}\n`, false]);
  io.type("\n");
  await first;
  const second = turn();
  io.interrupt();
  await second;
  // Nothing is asked for any more.
  await turn();
  assert.equal(io.out(), `${TURN_LINE}\n`.repeat(2));
  io.endInput();
});

Deno.test("two WebGPUs: without Dawn nothing is measured", async () => {
  const cache = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  assert.throws(() => refuseMissing(["builtin", "dawn"], cache), {
    name: "UsageError",
    message:
      /^Cannot use "--webgpu builtin,dawn": Dawn is not in Deno's cache; "deno cache .*" adds/,
  });
  refuseMissing(["builtin"], cache);
  await Deno.remove(cache);
});
