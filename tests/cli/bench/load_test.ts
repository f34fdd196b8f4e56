import assert from "node:assert/strict";
import type { LoadRow } from "../../../src/measure/load/row.ts";
import type { OpenLoadRequest } from "../../../src/measure/load/session.ts";
import { runLoad } from "../../../src/cli/bench/load.ts";
import { parseArguments } from "../../../src/cli/options/parse.ts";
import { readRecording } from "../../../src/simulate/compare/recording.ts";
import { UsageError } from "../../../src/errors.ts";
import { fakeLoadCell, fakeLoadSession } from "../../measure/load/fake.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

interface Given {
  readonly session?: ReturnType<typeof fakeLoadSession>;
  readonly io?: FakeIo;
}

async function run(
  line: string,
  { session = fakeLoadSession(), io = fakeIo() }: Given = {},
) {
  const args = line.split(" ").filter((arg) => arg !== "");
  const invocation = parseArguments(["bench", "load", ...args]);
  assert.ok(invocation.command === "bench load");
  const requests: OpenLoadRequest[] = [];
  const code = await runLoad(invocation.options, {
    io,
    args,
    version: "0.1.0",
    now: () => new Date(0),
    open: (request) => {
      requests.push(request);
      return Promise.resolve(session);
    },
  });
  const [request] = requests;
  assert.ok(request);
  return { code, request, session, out: io.out(), err: io.err() };
}

const refused = async (line: string) => {
  const found = await run(line).then(() => undefined, (error: unknown) => error);
  assert.ok(found instanceof UsageError, line);
  assert.equal(found.message.includes("\n"), false);
  return found.message;
};

async function inFolder(test: (path: (name: string) => string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-load-" });
  try {
    await test((name) => `${folder}/${name}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const QUICK = "--repeat 1 --num-requests 8 --policy static:num_steps=0,ema:candidate_steps=1/3";
const QUICK_FIRST = "static:num_steps=0";
const TRACE = `TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,480,10
2023-11-16 18:17:04.0319600,318,8
2023-11-16 18:17:04.0781490,110,27
`;

Deno.test("bench load without flags: 2 requests a second, a minute and a half in all, the default policies, a table", async () => {
  const { code, request, session, out, err } = await run("");
  assert.equal(code, 0);
  const { plan, limits: { maxBatch } } = request;
  assert.deepEqual(plan.cases.map(({ name }) => name), ["2 req/s"]);
  assert.equal(plan.cases[0]?.arrivals(1).length, 12);
  const labels = plan.arms.map(({ label }) => label);
  const [first = "", again, ...others] = labels;
  assert.match(first, /^(off|static:num_steps=0)$/);
  assert.equal(again, `${first} (A/A)`);
  assert.deepEqual(others.slice(0, 2), ["static:num_steps=3", "ema"]);
  assert.deepEqual([plan.blocks, plan.warmup, plan.seed, maxBatch], [3, 4, 1, 8]);
  assert.deepEqual([plan.work.maxTokens, plan.work.outputTokens], [128, undefined]);
  assert.match(out, /^model fake-1B, .*load 2 req\/s.*\n\n\| policy +\| +tokens\/s \|/);
  const lines = err.trimEnd().split("\n");
  assert.match(
    lines[0] ?? "",
    /^2 req\/s: 5 measurements in each of 3 blocks, 180 requests, about (?:2 min|\d\d s) of arrivals; for more --num-requests, --duration, --repeat, --request-rate 1,4,16$/,
  );
  assert.match(lines[1] ?? "", /^warming up: 2 req\/s, /);
  assert.match(
    lines.at(-1) ?? "",
    /^2 req\/s, block 3, .*: \d+\.\d tokens\/s, end to end p50 \d+ ms$/,
  );
  assert.ok(session.disposed());
});

Deno.test("rates, schedules and closed loops become cases", async () => {
  const cases = async (line: string) =>
    (await run(`${QUICK} ${line}`)).request.plan.cases
      .map(({ name, requestRate, concurrency, burstiness }) => [
        ...[name, requestRate, concurrency, burstiness],
      ]);
  assert.deepEqual(await cases("--request-rate 1,0.5,1 --burstiness 0.5"), [
    ["1 req/s", 1, null, 0.5],
    ["0.5 req/s", 0.5, null, 0.5],
  ]);
  assert.deepEqual(await cases("--concurrency 1,4"), [
    ["1 in flight", null, 1, null],
    ["4 in flight", null, 4, null],
  ]);
  assert.deepEqual(await cases("--request-rate 0:2,1:9 --duration 3"), [
    ["rates 0:2,1:9", null, null, 1],
  ]);
  const timed = await run("--repeat 1 --request-rate 20 --duration 5 --policy static");
  const arrivals = timed.request.plan.cases[0]?.arrivals(1) ?? [];
  assert.ok(arrivals.length > 64 && arrivals.every(({ atMs }) => atMs < 5000));
  const both = await run("--repeat 1 --request-rate 20 --duration 5 --num-prompts 3");
  assert.equal(both.request.plan.cases[0]?.arrivals(1).length, 3);
});

Deno.test("--recording: a recording of each measurement, which simulate reads; a file of a single one", async () => {
  await inFolder(async (path) => {
    const { session } = await run(`${QUICK} --request-rate 4,16 --recording ${path("runs")}`);
    const names = [...Deno.readDirSync(path("runs"))].map(({ name }) => name).sort();
    assert.deepEqual(names, [
      ...["16", "4"].flatMap((rate) => [
        `${rate}-req-s_ema-candidate_steps=1-3_1.jsonl`,
        `${rate}-req-s_static-num_steps=0-A-A_1.jsonl`,
        `${rate}-req-s_static-num_steps=0_1.jsonl`,
      ]),
    ]);
    for (const name of names) {
      const { machine, requests, rounds } = readRecording(
        Deno.readTextFileSync(path(`runs/${name}`)),
      );
      assert.equal(machine?.policy, name.includes("ema") ? "ema:candidate_steps=1/3" : QUICK_FIRST);
      assert.deepEqual([requests.length, machine?.prefillRows], [8, 64]);
      const tokens = requests.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
      const brought = rounds.flatMap(({ accepted }) => accepted).reduce((a, b) => a + b + 1, 0);
      assert.equal(brought, tokens);
    }
    assert.ok(session.disposed());
    const single = "--repeat 1 --num-requests 8 --policy ema";
    await run(`${single} --recording ${path("one.jsonl")}`);
    for (const there of ["one.jsonl", "runs"]) {
      assert.match(
        await refused(`${single} --recording ${path(there)}`),
        /^Cannot .* give --force/,
      );
      await run(`${single} --recording ${path(there)} --force`);
    }
    const [{ accepted = [] } = {}] = readRecording(Deno.readTextFileSync(path("one.jsonl"))).rounds;
    assert.ok(accepted.length > 0);
    const file = `--recording ${path("many.jsonl")}`;
    assert.match(
      await refused(`${QUICK} --request-rate 4,16 ${file}`),
      /^Cannot use "--recording .*many\.jsonl": a \.jsonl file has one load, one policy and one block, not 2, 2 and 1; give a folder$/,
    );
    const both = path("both.jsonl");
    assert.equal(
      await refused(`${single} --recording ${both} --output ${both}`),
      `Cannot use "--recording ${both}" with "--output ${both}": both name one file`,
    );
    assert.ok(![...Deno.readDirSync(path(""))].some(({ name }) => /many|both/.test(name)));
    assert.match(
      await refused(`${single} --recording ${path("one.jsonl")}/x`),
      /^Cannot use "--recording/,
    );
  });
});

Deno.test("a trace is replayed, scaled and cut; prompts of texts are not as long, and it says so", async () => {
  await inFolder(async (path) => {
    await Deno.writeTextFile(path("t.csv"), TRACE);
    const line = `--repeat 1 --trace ${path("t.csv")}:time=10,length=0.5`;
    const { request, err, out } = await run(`${line} --policy static --workload random`);
    const [one] = request.plan.cases;
    assert.equal(one?.name, "trace t.csv, time x 10, lengths x 0.5");
    assert.deepEqual(
      one?.arrivals(1).map(({ atMs, promptTokens, outputTokens }) => [
        ...[Math.round(atMs), promptTokens, outputTokens],
      ]),
      [[0, 240, 5], [520, 159, 4], [982, 55, 14]],
    );
    assert.ok(!err.includes("warning"));
    assert.match(out, /load trace t\.csv/);
    const texts = await run(`--repeat 1 --trace ${path("t.csv")} --policy static`);
    assert.match(
      texts.err,
      /^warning: prompts are those of fledgling:all and do not have the lengths of the trace/,
    );
    const cut = await run(`--repeat 1 --trace ${path("t.csv")} --num-requests 2 --workload random`);
    assert.equal(cut.request.plan.cases[0]?.arrivals(1).length, 2);
    await Deno.writeTextFile(path("t.csv"), `${TRACE}now,1,1\n`);
    assert.match(
      await refused(`--trace ${path("t.csv")}`),
      /^Cannot use "--trace .*": line 5, "now,1,1"/,
    );
  });
  assert.match(await refused("--trace none.csv"), /^Cannot read "none\.csv"/);
});

Deno.test("flags reach the engine and the requests", async () => {
  const sizes = "--max-batch 3 --max-kv-tokens 4096 --context-length 512 --rounds-per-sync 2";
  const work = "--output-tokens 9 --workload random --prompt-tokens 33 --warmup 7 --seed 5";
  const { request } = await run(`${QUICK} ${sizes} ${work} --draft d --model m`);
  const { plan, limits, model } = request;
  assert.deepEqual(
    [limits.maxBatch, limits.maxKvTokens, limits.contextLength, limits.roundsPerSync],
    [3, 4096, 512, 2],
  );
  assert.deepEqual([model?.model, model?.draft], ["m", "d"]);
  const share = await run(`${QUICK} --gpu-memory-utilization 0.5`);
  assert.equal(share.request.limits.gpuMemoryUtilization, 0.5);
  assert.deepEqual([plan.work.outputTokens, plan.work.promptTokens], [9, 33]);
  assert.deepEqual([plan.warmup, plan.seed, plan.work.workload.name], [7, 5, "random"]);
  const alone = await run("--repeat 1 --num-requests 4 --model m");
  assert.equal(alone.request.plan.arms.length, 2, "without a draft only plain decoding");
});

Deno.test("options of a policy may have commas, between its own and the next", async () => {
  const { request } = await run(
    "--repeat 1 --num-requests 4 --policy ema:candidate_steps=1/3,update_interval=2,static:num_steps=2",
  );
  const [ema, , fixed] = request.plan.arms;
  assert.equal(ema?.label, "ema:candidate_steps=1/3,update_interval=2");
  assert.deepEqual(ema?.policy.options, { candidate_steps: [1, 3], update_interval: 2 });
  assert.deepEqual([fixed?.label, fixed?.policy.policy], ["static:num_steps=2", "static"]);
});

Deno.test("each format to standard output and to a file; JSONL rows come as they are measured", async () => {
  const starts = { md: /^model /, json: /^\[\n/, jsonl: /^\{"backend"/, html: /^<!doctype/ };
  for (const [format, start] of Object.entries(starts)) {
    assert.match((await run(`${QUICK} --format ${format}`)).out, start);
    await inFolder(async (path) => {
      const { out } = await run(`${QUICK} --format ${format} --output ${path("out")}`);
      assert.match(await Deno.readTextFile(path("out")), start);
      assert.match(out, starts.md, "the table is shown all the same");
      const again = await refused(`${QUICK} --output ${path("out")}`);
      assert.match(again, /^Cannot write ".*": the file exists already; .*--force/);
    });
  }
  const io = fakeIo();
  const seen: number[] = [];
  const session = fakeLoadSession((spec) => {
    if (spec.block >= 0) seen.push(io.out().split("\n").length - 1);
    return Promise.resolve(fakeLoadCell(spec));
  });
  const { out } = await run(`${QUICK} --request-rate 5,9 --format jsonl`, { session, io });
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5]);
  const rows = out.trimEnd().split("\n").map((line) => JSON.parse(line) as LoadRow);
  assert.deepEqual(rows.map(({ request_rate }) => request_rate), [5, 5, 5, 9, 9, 9]);
});

Deno.test("objectives make goodput", async () => {
  const rows = async (line: string) =>
    JSON.parse((await run(`${QUICK} --format json ${line}`)).out) as LoadRow[];
  assert.ok((await rows("")).every(({ request_goodput }) => request_goodput === null));
  const [all] = await rows("--goodput ttft:1e6,tpot:1e6");
  assert.equal(all?.request_goodput, all?.request_throughput);
  const [none] = await rows("--goodput tpot:0.001");
  assert.deepEqual([none?.request_goodput, none?.slo_tpot_ms], [0, 0.001]);
});

Deno.test("different texts: a FAILED line, exit code 1, and what was measured", async () => {
  const session = fakeLoadSession((spec) => {
    const result = fakeLoadCell(spec);
    const requests = result.requests.map((each) => ({ ...each, outputHash: spec.arm.label }));
    return Promise.resolve({ ...result, requests });
  });
  const { code, err, out } = await run(QUICK, { session });
  assert.equal(code, 1);
  assert.match(
    err,
    /^FAILED: ".*" and ".*" gave different greedy outputs \(2 req\/s, block 1, request 1\)$/m,
  );
  assert.match(out, /^model /);
});

Deno.test("Ctrl+C ends with what is there", async () => {
  const io = fakeIo();
  let measured = 0;
  const session = fakeLoadSession((spec) => {
    // The second policy of the first block.
    if (spec.one.name === "9 req/s" && spec.block === 0 && ++measured === 2) io.interrupt();
    return Promise.resolve(fakeLoadCell(spec));
  });
  const { code, out, err } = await run(`${QUICK} --request-rate 5,9`, { session, io });
  assert.equal(code, 130);
  assert.match(err, /warning: stopped: the measurement that was running is left out/);
  const again = fakeIo();
  const halted = fakeLoadSession((spec) => {
    if (spec.arm.again) again.interrupt();
    return Promise.resolve(fakeLoadCell(spec));
  });
  const silent = await run(`${QUICK} --quiet`, { session: halted, io: again });
  assert.deepEqual([silent.code, silent.err], [130, ""]);
  assert.equal(out.split("\n").filter((line) => /^\| (5|9) req\/s/.test(line)).length, 5);
});

Deno.test("on a terminal a bar says how many requests have been answered", async () => {
  const io = fakeIo({ terminal: true, columns: 100 });
  const { err } = await run(`${QUICK} --request-rate 5`, { io });
  assert.match(err, /bench \[#+-*\] 1[0-9] of 24, .*5 req\/s, static:num_steps=0/);
  assert.match(err + io.out(), /--format md: all columns/);
  const quiet = await run(`${QUICK} --quiet`);
  assert.equal(quiet.err, "");
});

Deno.test("flags that contradict each other are refused in one line", async () => {
  const cases: [line: string, message: RegExp][] = [
    ["--request-rate 1 --concurrency 2", /"--request-rate" with "--concurrency": allowed is one/],
    ["--trace t.csv --request-rate 0:1", /"--request-rate" with "--trace"/],
    ["--concurrency 2 --burstiness 2", /"--burstiness": it needs --request-rate$/],
    ["--time-scale 2", /"--trace time=2": allowed is FILE, or FILE:time=S/],
    ["--trace t.csv:time=0", /"--trace t.csv:time=0": allowed is FILE/],
    [
      "--concurrency 2 --duration 5",
      /"--duration" with "--concurrency": a closed loop ends after --num-requests/,
    ],
    ["--request-rate 0:1", /"--request-rate 0:1" alone: .* give --duration/],
    ["--request-rate 5:1 --duration 3", /"--request-rate 5:1": allowed is SECONDS:RATE/],
    ["--output-tokens 5 --max-tokens 6", /"--max-tokens" with "--output-tokens"/],
    ["--prompt-tokens 5", /"--prompt-tokens" with "--workload fledgling:all"/],
    ["--trace t.csv --prompt-tokens 5", /"--prompt-tokens" with "--trace"/],
    [
      "--request-rate 0.001 --duration 1",
      /^Cannot measure "0\.001 req\/s": no request arrives in block 1 of \d+; give a longer --duration$/,
    ],
    ["--request-rate 0", /"--request-rate 0": allowed is numbers from 0\.001/],
    ["--policy nix", /"--policy nix": no such policy/],
    ["--policy static:num_steps=x", /"--policy static:num_steps=x": /],
    ["--format csv", /"--format csv": allowed is one of md, json, jsonl, html/],
    ["--output /none/x.html", /"\/none\/x\.html"/],
    ["--random-draft d.json", /"--draft random:d.json": it needs --model random:/],
  ];
  for (const [line, message] of cases) assert.match(await refused(line), message, line);
});

Deno.test("a slip in the second word is told", () => {
  const message = (args: string[]) => {
    try {
      parseArguments(args);
    } catch (error) {
      assert.ok(error instanceof UsageError);
      return error.message;
    }
    return "";
  };
  assert.equal(
    message(["bench", "laod"]),
    'Cannot run "bench laod": no such command, did you mean bench load? (there are bench, bench load)',
  );
  assert.match(
    message(["bench", "--request-rate", "1"]),
    /"--request-rate" with bench: it is allowed with bench load/,
  );
});
