import assert from "node:assert/strict";
import type { SimulatedTable } from "../../src/measure/simulated/summary.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { runSimulate } from "../../src/cli/simulate/simulate.ts";
import { UsageError } from "../../src/errors.ts";
import { COST_PRESETS } from "../../tools/cost_presets.ts";
import { type FakeIo, fakeIo } from "./fake.ts";

async function run(line: string, io: FakeIo = fakeIo()) {
  const invocation = parseArguments(["simulate", ...line.split(" ").filter((arg) => arg !== "")]);
  assert.ok(invocation.command === "simulate");
  const code = await runSimulate(invocation.options, io);
  return { code, out: io.out(), err: io.err() };
}

interface Printed {
  readonly validation?: { readonly policy: string; readonly ratio: number };
  readonly tables: readonly SimulatedTable[];
}

async function tablesOf(line: string): Promise<Printed> {
  const { code, out } = await run(`${line} --format json`);
  assert.equal(code, 0);
  return JSON.parse(out) as Printed;
}

const refused = async (line: string) => {
  const found = await run(line).then(() => undefined, (error: unknown) => error);
  assert.ok(found instanceof UsageError, `${line}: ${found}`);
  return found.message;
};

Deno.test("simulate: policies beside every static depth and the oracles, in each scenario", async () => {
  const line = "--policy ema,static:num_steps=2 --scenario phases-1,bursty --rounds 60 --repeat 3";
  const { tables } = await tablesOf(line);
  assert.deepEqual(tables.map(({ world }) => world), ["phases-1", "bursty"]);
  for (const { rows, best_static } of tables) {
    const statics = Array.from({ length: 8 }, (_, depth) => `static:${depth}`);
    assert.deepEqual(
      rows.map(({ policy }) => policy),
      ["ema", "static:num_steps=2", ...statics, "oracle", "oracle:batch"],
    );
    const best = rows.find(({ policy }) => policy === best_static);
    assert.deepEqual([best?.relative.ratio, best?.regret.static], [1, 0]);
    // The same policy by another name is the same run.
    const [asked, fixed] = ["static:num_steps=2", "static:2"].map((name) =>
      rows.find(({ policy }) => policy === name)
    );
    assert.deepEqual({ ...asked, policy: "", kind: "" }, { ...fixed, policy: "", kind: "" });
    for (const { relative, regret, throughput } of rows) {
      assert.ok(throughput > 0 && relative.ratio <= 1.2 && regret.dynamic < 1);
    }
  }
});

Deno.test("simulate: an oracle that is asked for runs once, and so does a policy that is named twice", async () => {
  const line = "--policy oracle,ema,ema --batch-sizes 2 --rounds 9 --repeat 1";
  const { tables: [table] } = await tablesOf(line);
  const names = table?.rows.map(({ policy }) => policy) ?? [];
  assert.deepEqual([names.slice(0, 2), names.length], [["oracle", "ema"], 2 + 8 + 1]);
});

Deno.test("simulate: a run in which nothing takes time has no NaN, and one without rounds no accept length", async () => {
  const line = "--policy ema --concurrency 4 --num-requests 5 --output-tokens 1 --repeat 3";
  const { code, out } = await run(line);
  assert.equal(code, 0);
  assert.doesNotMatch(out, /NaN|accept length/);
});

Deno.test("simulate: without --policy, those whose steps the cost table lacks are left out", async () => {
  const { code, out, err } = await run(
    "--costs sglang-glm-4.7 --scenario phases-1 --rounds 9 --repeat 1 --format json",
  );
  assert.equal(code, 0);
  const { tables: [table] } = JSON.parse(out) as Printed;
  const statics = [1, 2, 3, 4].map((depth) => `static:${depth}`);
  assert.deepEqual(table?.rows.map(({ policy }) => policy), [...statics, "oracle", "oracle:batch"]);
  assert.match(
    err,
    /left out, because they draft steps that the cost table lacks: off, ema, .*hybrid\n$/,
  );
});

Deno.test("simulate: one seed is one output, another seed another", async () => {
  const line = "--policy ema --scenario phases-4 --rounds 60 --repeat 1 --seed";
  const [first, again, other] = [
    await run(`${line} 5`),
    await run(`${line} 5`),
    await run(`${line} 6`),
  ];
  assert.equal(first.out, again.out);
  assert.notEqual(first.out, other.out);
});

Deno.test("simulate: tables as Markdown, of static depths the best alone", async () => {
  const { out } = await run(
    "--policy ema,oracle:depth --scenario phases-1,walk --rounds 40 --repeat 1",
  );
  const lines = out.split("\n");
  assert.equal(lines[0], "costs: toy; repeats 1, seed 0");
  assert.match(lines[2] ?? "", /^\| of best static +\| +phases-1 \| +walk \| +mean \|$/);
  assert.match(out, /^phases-1: batch 1; acceptance 0.35 and 0.85 in turn$/m);
  const statics = new Set(out.match(/static:\d/g));
  assert.ok(statics.size <= 2, [...statics].join());
  assert.match(out, /^\| oracle:depth/m);
});

Deno.test("simulate: requests that arrive, and what they saw", async () => {
  const { tables: [table] } = await tablesOf(
    "--policy ema --request-rate 300 --num-requests 40 --max-batch 4 --max-kv-tokens 400 " +
      "--prompt-tokens 64 --output-tokens 50 --costs rtx4090-7b --repeat 2",
  );
  assert.equal(table?.world, "300 requests/s");
  for (const { completed, preemptions, ttft_ms, e2e_ms } of table?.rows ?? []) {
    assert.equal(completed, 40);
    assert.ok(preemptions > 0);
    assert.ok((ttft_ms.p50 ?? 0) > 0 && (e2e_ms.p99 ?? 0) > (e2e_ms.p50 ?? 0));
  }
});

Deno.test("simulate: a range of one rate is that rate", async () => {
  const line = "--policy ema --num-requests 9 --repeat 1 --request-rate";
  const [range, rate] = [await tablesOf(`${line} 4-4`), await tablesOf(`${line} 4`)];
  assert.equal(range.tables[0]?.world, "4 requests/s");
  assert.equal(range.tables[0]?.rows[0]?.completed, 9);
  assert.deepEqual(range, rate);
});

Deno.test("simulate: a trace, a schedule, a closed loop", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-simulate-" });
  try {
    const trace = `${folder}/trace.csv`;
    const lines = ["2023-11-16 18:15:46.68,20,4", "2023-11-16 18:15:47.68,30,14"];
    await Deno.writeTextFile(
      trace,
      `TIMESTAMP,ContextTokens,GeneratedTokens\n${lines.join("\n")}\n`,
    );
    const loads = {
      [`--trace ${trace}:time=0.01`]: 2,
      "--request-rate 0:50,1:500 --num-requests 9": 9,
      "--concurrency 2 --num-requests 5 --simulate-acceptance phases:0.2/0.9": 5,
    };
    for (const [load, count] of Object.entries(loads)) {
      const { tables: [table] } = await tablesOf(`--policy ema --repeat 1 ${load}`);
      assert.equal(table?.rows[0]?.completed, count, load);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("simulate: a recorded run with the costs that it was measured with", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-simulate-" });
  try {
    const [costs, recorded] = [`${folder}/costs.json`, `${folder}/run.jsonl`];
    const flat = { ...COST_PRESETS["toy"], verify: [{ at: 1, ms: 10 }], extend: [], level: [] };
    await Deno.writeTextFile(costs, JSON.stringify(flat));
    // One request: one token from its prompt, then ten rounds of two tokens that take 10 ms each.
    const rounds = Array.from(
      { length: 10 },
      (_, n) => JSON.stringify({ tMs: 10 * (n + 1), batch: 1, numSteps: 1, accepted: [1], ms: 10 }),
    );
    const request = { atMs: 0, promptTokens: 8, outputTokens: 21 };
    await Deno.writeTextFile(recorded, [JSON.stringify(request), ...rounds].join("\n"));
    const line =
      `--costs ${costs} --recording ${recorded} --policy static:num_steps=1 --noise 0 --repeat 1`;
    const { validation } = await tablesOf(line);
    // A draft at a bonus token's place was never tested. Its chance is that of all drafts, here 1.
    assert.deepEqual([validation?.policy, validation?.ratio], ["static:num_steps=1", 1]);
    assert.match(
      (await run(line)).out,
      /simulated 210\.0 tok\/s, measured 210\.0 tok\/s, \+0\.0 %\n$/,
    );
    const replay =
      `--simulate-acceptance replay:${recorded} --concurrency 1 --num-requests 2 --repeat 1`;
    assert.equal((await tablesOf(`${replay} --policy ema`)).tables[0]?.rows[0]?.completed, 2);
    await Deno.writeTextFile(recorded, "no JSON");
    assert.match(await refused(line), /Cannot use "--recording .*": line 1 is neither/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("simulate: a recording of more requests than a call has arguments", async () => {
  const path = await Deno.makeTempFile({ suffix: ".jsonl" });
  try {
    const requests = Array.from(
      { length: 200_000 },
      (_, n) => `{"atMs":${1000 * n},"promptTokens":1,"outputTokens":9}\n`,
    );
    const round = JSON.stringify({ tMs: 9, batch: 1, numSteps: 0, accepted: [0], ms: 1 });
    await Deno.writeTextFile(path, requests.join("") + round);
    const { tables } = await tablesOf(`--recording ${path} --policy off --rounds 1 --repeat 1`);
    assert.equal(tables[0]?.rows[0]?.rounds, 1);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("simulate: fixed batches by acceptance, over plain decoding", async () => {
  const line = "--policy hybrid --batch-sizes 1,16 --rounds 300 --repeat 1 --simulate-acceptance";
  const { tables } = await tablesOf(`${line} geometric:0;geometric:0.9`);
  assert.deepEqual(tables.map(({ world }) => world), [
    ...["geometric:0", "geometric:0.9"].flatMap((name) => [`1, ${name}`, `16, ${name}`]),
  ]);
  const plain = tables.map(({ rows }) =>
    rows.find(({ policy }) => policy === "static:0")?.throughput ?? NaN
  );
  const ratios = tables.map(({ rows: [first] }, i) =>
    (first?.throughput ?? NaN) / (plain[i] ?? NaN)
  );
  assert.ok(ratios.every((ratio) => ratio > 0.95), `${ratios}`);
  assert.ok((ratios[2] ?? 0) > 2, `${ratios}`);
  const text = (await run(`${line} geometric:0;geometric:0.9`)).out;
  const row = ratios.map((ratio) => ratio.toFixed(3)).join(" | +");
  assert.match(text, new RegExp(`of plain decoding [^]*hybrid +\\| +${row}`));
  assert.match(
    await refused("--batch-sizes 1 --duration 3"),
    /^Cannot use "--batch-sizes" with "--duration"/,
  );
});

Deno.test("simulate: an unknown policy is told all names, with the oracles", async () => {
  assert.match(await refused("--policy nope"), /auto, oracle, oracle:depth\)$/);
});

Deno.test("simulate: what cannot be used is one line", async () => {
  const lines = {
    "--scenario quiet": 'Cannot use "--scenario quiet": allowed is all, phases-1,',
    "--policy orcale":
      'Cannot use "--policy orcale": no such policy, did you mean oracle? (there are static, ',
    "--policy oracle:batch": 'Cannot use "--policy oracle:batch": no such policy',
    "--costs nowhere.json": 'Cannot read "nowhere.json"',
    "--costs rtx4090":
      'Cannot use "--costs rtx4090": there is no such file or machine, did you mean rtx4090-7b?',
    "--scenario walk --request-rate 3": 'Cannot use "--scenario" with "--request-rate"',
    "--trace a --concurrency 3":
      'Cannot use "--trace" with "--concurrency": allowed is one of them',
    "--simulate-acceptance geometric:0.5":
      'Cannot use "--simulate-acceptance" alone: it needs a load',
    "--recording a --simulate-acceptance geometric:1":
      'Cannot use "--recording" with "--simulate-acceptance"',
    "--request-rate 1 --simulate-acceptance coin:1":
      'Cannot use "--simulate-acceptance coin:1": allowed is geometric',
    "--request-rate 1:2": 'Cannot use "--request-rate 1:2": allowed is SECONDS:RATE',
    "--costs sglang-glm-4.7 --policy static:num_steps=6 --scenario phases-1 --rounds 9":
      'Cannot use policy "static:num_steps=6": it drafts 6 steps, and the cost table has only 1, 2, 3, 4',
    "--trace a --prompt-tokens 5":
      'Cannot use "--prompt-tokens" with "--trace": the lengths are those of the trace',
    "--trace a --output-tokens 5": 'Cannot use "--output-tokens" with "--trace"',
    "--trace a --burstiness 2": 'Cannot use "--burstiness": it needs --request-rate',
    "--concurrency 3 --duration 5":
      'Cannot use "--duration" with "--concurrency": a closed loop ends after --num-requests',
    "--concurrency 3 --burstiness 2": 'Cannot use "--burstiness": it needs --request-rate',
    ...Object.fromEntries(
      ["--num-requests", "--duration", "--prompt-tokens", "--output-tokens", "--burstiness"]
        .map((flag) => [
          `--recording a ${flag} 5`,
          `Cannot use "--recording" with "${flag}": a recording has its own requests`,
        ]),
    ),
    "--request-rate 0.001 --duration 1 --policy ema":
      'Cannot simulate "0.001 requests/s": no request arrives with seed 0; give a longer --duration',
    "--request-rate 1 --max-kv-tokens 64 --policy ema":
      "Cannot simulate a request of 128 and 128 tokens: --max-kv-tokens is 64",
  };
  for (const [line, message] of Object.entries(lines)) {
    const found = await refused(line);
    assert.ok(found.startsWith(message), `${line}: ${found}`);
  }
});

Deno.test("simulate: on a terminal of 80 columns no line is longer; --format md is whole", async () => {
  const terminal = () => fakeIo({ terminal: true, columns: 80 });
  const line = "--rounds 3 --repeat 3 --policy ema,static:num_steps=2,hybrid";
  const { out } = await run(line, terminal());
  assert.deepEqual(out.split("\n").filter((line) => line.length > 80), []);
  assert.match(out, /^of best\nstatic +phases-1 +phases-4 /m);
  assert.match(out, /^static +(?:\S+ +)*mean$/m, "the second half of the worlds");
  assert.match(out, /^policy +tok\/s +static +oracle /m);
  const whole = (await run(line)).out;
  assert.match(whole, /^\| policy /m);
  assert.equal((await run(`${line} --format md`, terminal())).out, whole);
  const loaded = await run("--request-rate 9 --num-requests 9 --policy ema", terminal());
  assert.deepEqual(loaded.out.split("\n").filter((line) => line.length > 80), []);
  assert.match(loaded.out, /^ .*TPOT p50 +E2E p50/m);
});

Deno.test("simulate: a file that is there is replaced with --force alone", async () => {
  const file = await Deno.makeTempFile({ prefix: "eyrie-simulate-" });
  try {
    const line = `--policy ema --scenario phases-1 --rounds 9 --repeat 1 --output ${file}`;
    assert.equal((await run(line)).out, "");
    const text = await Deno.readTextFile(file);
    assert.match(text, /phases-1/);
    assert.match(await refused(`${line} --format json`), /^Cannot write .* give --force/);
    assert.equal(await Deno.readTextFile(file), text);
    await run(`${line} --format json --force`);
    JSON.parse(await Deno.readTextFile(file));
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("simulate: Ctrl+C ends it without a table", async () => {
  const io = fakeIo();
  io.interrupt();
  const { code, out } = await run("--policy ema --scenario phases-1 --rounds 20", io);
  assert.deepEqual([code, out], [130, ""]);
});
