import assert from "node:assert/strict";
import type { BenchRequest, CellSpec } from "../../src/measure/runner.ts";
import type { BenchRow } from "../../src/measure/row.ts";
import { runBench } from "../../src/cli/bench/bench.ts";
import { presetJson } from "../../src/engine/schedule/presets.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";
import { fakeCell, fakeSession, SUBJECT } from "../measure/fake.ts";
import { type FakeIo, fakeIo } from "./fake.ts";

interface Given {
  readonly session?: ReturnType<typeof fakeSession>;
  readonly io?: FakeIo;
}

async function run(
  args: readonly string[],
  { session = fakeSession(), io = fakeIo() }: Given = {},
) {
  const invocation = parseArguments(["bench", ...args]);
  assert.ok(invocation.command === "bench");
  const requests: BenchRequest[] = [];
  const code = await runBench(invocation.options, {
    io,
    args,
    version: "0.1.0",
    now: () => new Date(0),
    open: (request) => {
      requests.push(request);
      request.hooks?.onProgress?.({ label: "target", done: 10, total: 10 });
      return Promise.resolve(session);
    },
  });
  return { code, requests, session, out: io.out(), err: io.err() };
}

/** A folder that is gone after the test. */
async function inFolder(test: (path: (name: string) => string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-bench-" });
  try {
    await test((name) => `${folder}/${name}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const QUICK = ["--repeat", "2", "--output-tokens", "16", "--num-steps", "0,3"];
const rowsOf = (text: string) =>
  text.trimEnd().split("\n").map((line) => JSON.parse(line) as BenchRow);

Deno.test("bench without flags: batch 1, steps 0,1,3,7, five blocks, a table", async () => {
  const { code, requests, session, out, err } = await run([]);
  assert.equal(code, 0);
  const [request] = requests;
  assert.equal(request?.workload.name, "fledgling:all");
  assert.deepEqual(request?.cases, [
    { workload: "fledgling:all", outputTokens: 128, temperature: 0, depth: 0, batch: 1 },
  ]);
  const steps = request?.settings.map((setting) =>
    setting.kind === "static" ? setting.numSteps : 0
  );
  assert.deepEqual(steps, [0, 0, 1, 3, 7]);
  assert.equal(session.cells.filter(({ repeat }) => repeat >= 0).length, 25);
  assert.match(out, /^model fake-1B, .*\n\n\| batch \| setting/);
  const lines = err.trimEnd().split("\n");
  assert.match(lines[0] ?? "", /^warming up: batch 1, 128 output tokens, temperature 0$/);
  assert.match(lines[1] ?? "", /^warm after \d+\.\d s, passes: \d+$/);
  assert.match(lines[2] ?? "", /^1 of 25: batch 1, .*, block 1, .*: \d+\.\d tokens\/s$/);
  assert.equal(lines.length, 27);
  assert.ok(session.disposed());
});

Deno.test("the axes make all combinations; doubles count once", async () => {
  const axes = ["--batch-sizes", "1,2,2", "--temperature", "0,0.7", "--depth", "0,64"];
  const { requests } = await run([...QUICK, ...axes, "--presets", "aggressive"]);
  const cases = requests[0]?.cases ?? [];
  assert.deepEqual(
    cases.map(({ temperature, depth, batch }) => [temperature, depth, batch]),
    [[0, 0, 1], [0, 0, 2], [0, 64, 1], [0, 64, 2], [0.7, 0, 1], [0.7, 0, 2], [0.7, 64, 1], [
      0.7,
      64,
      2,
    ]],
  );
  const options = presetJson("aggressive");
  const policy = { policy: "ema", options };
  assert.deepEqual(requests[0]?.settings.at(-1), { kind: "policy", policy });
});

Deno.test("policies are an axis, a comma may be within one", async () => {
  const policies = "ema:candidate_steps=1/3,update_interval=2,static,static";
  const { requests, out } = await run([...QUICK, "--num-steps", "0", "--policy", policies]);
  const settings = requests[0]?.settings.slice(2);
  assert.deepEqual(settings, [
    {
      kind: "policy",
      policy: { policy: "ema", options: { candidate_steps: [1, 3], update_interval: 2 } },
    },
    { kind: "policy", policy: { policy: "static", options: {} } },
  ]);
  assert.match(out, /\| policy ema:candidate_steps=1\/3,update_interval=2 \|/);
  await assert.rejects(run([...QUICK, "--policy", "static,statik"]), {
    name: "UsageError",
    message: /^Cannot use "--policy statik": no such policy, did you mean static\?/,
  });
});

Deno.test("rounds per sync are an axis of numbers and auto", async () => {
  const { requests, out } = await run([...QUICK, "--rounds-per-sync", "auto,1,8,1"]);
  assert.deepEqual(requests[0]?.cases.map((one) => one.roundsPerSync), ["auto", 1, 8]);
  assert.match(out, /\| rounds per sync \|/);
  for (const value of ["0", "9", "1-4", "2.5", "many"]) {
    await assert.rejects(run([...QUICK, "--rounds-per-sync", value]), (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(
        error.message,
        /^Cannot use "--rounds-per-sync [^"]+": allowed is some of auto, 1, /,
      );
      return true;
    });
  }
});

Deno.test("without a draft only plain decoding is measured", async () => {
  for (const args of [["--draft", "none"], ["--model", "m"], ["--model", "random:c.json"]]) {
    const { requests } = await run(["--repeat", "1", ...args]);
    assert.ok(requests[0]?.settings.every(({ kind }) => kind === "plain"), args.join(" "));
  }
});

Deno.test("random weights, simulated acceptance and sized prompts reach the engine", async () => {
  const session = fakeSession(undefined, { ...SUBJECT, simulated: true });
  const random = ["--model", "random:c.json", "--draft", "random:d.json"];
  const simulate = ["--simulate-acceptance", "0.8,0.8,0.5", "--prompt-tokens", "8,16"];
  const { requests, out } = await run([...QUICK, ...random, ...simulate], { session });
  const [request] = requests;
  assert.deepEqual(request?.model?.random, { target: "c.json", draft: "d.json" });
  assert.deepEqual(request?.speculation?.simulateAcceptance, [0.8, 0.8, 0.5]);
  assert.deepEqual(request?.cases.map(({ promptTokens }) => promptTokens), [8, 16]);
  assert.equal(request?.workload.name, "random");
  assert.match(out, /^SIMULATED/);
  const alone = await run([...QUICK, "--workload", "random"]);
  assert.deepEqual(alone.requests[0]?.cases.map(({ promptTokens }) => promptTokens), [128]);
});

Deno.test("JSONL rows come as they finish", async () => {
  const io = fakeIo();
  const seen: number[] = [];
  const session = fakeSession((spec) => {
    seen.push(io.out().split("\n").length - 1);
    return Promise.resolve(fakeCell(spec));
  });
  const { out } = await run([...QUICK, "--batch-sizes", "1,2", "--format", "jsonl"], {
    session,
    io,
  });
  assert.deepEqual(new Set(seen), new Set([0, 3]));
  assert.deepEqual(rowsOf(out).map(({ batch, setting }) => [batch, setting]), [
    ...[[1, "plain"], [1, "plain (A/A)"], [1, "3 steps"]],
    ...[[2, "plain"], [2, "plain (A/A)"], [2, "3 steps"]],
  ]);
});

Deno.test("each format to standard output and to a file", async () => {
  const starts = {
    md: /^model /,
    csv: /^acceptance,/,
    json: /^\[\n/,
    jsonl: /^\{"format"/,
    html: /^<!doctype/,
  };
  for (const [format, start] of Object.entries(starts)) {
    assert.match((await run([...QUICK, "--format", format])).out, start);
    await inFolder(async (path) => {
      const file = path("out");
      const { out } = await run([...QUICK, "--format", format, "--output", file]);
      assert.match(await Deno.readTextFile(file), start);
      assert.match(out, starts.md, "the table is shown all the same");
    });
  }
});

Deno.test("a terminal gets a table that fits it and a verdict; named formats are whole", async () => {
  const long = ["--repeat", "3", "--output-tokens", "16", "--num-steps", "0,3"];
  const on = (columns: number, ...more: string[]) =>
    run([...long, ...more], { io: fakeIo({ terminal: true, columns }) });
  for (const columns of [80, 100]) {
    const { out } = await on(columns);
    assert.ok(out.split("\n").every((line) => line.length <= columns), `${columns}\n${out}`);
    assert.match(out, /^batch 1: (fastest is |named is |nothing is shown to be faster )/m);
    assert.ok(!out.includes("|"));
  }
  const { out: piped } = await run(long);
  assert.match(piped, /^\| batch \| setting .*\| blocks \|$/m);
  for (const whole of [["--wide"], ["--format", "md"]]) {
    assert.equal((await on(80, ...whole)).out, piped, whole.join(" "));
  }
  assert.match((await on(80, "--format", "csv")).out, /^acceptance,/);
  await inFolder(async (path) => {
    const { out } = await on(80, "--format", "html", "--output", path("page"));
    assert.match(out, /^model {5}fake-1B$/m);
    assert.match(await Deno.readTextFile(path("page")), /^<!doctype/);
  });
});

Deno.test("where the results do not say who won, stderr does; not with --quiet", async () => {
  const verdict = /^batch 1: no verdict: 2 blocks are too few for an interval; --repeat 5$/m;
  assert.match((await run(QUICK)).out, verdict);
  assert.doesNotMatch((await run(QUICK)).err, verdict);
  for (const format of ["csv", "json", "jsonl", "html"]) {
    const { err } = await run([...QUICK, "--format", format]);
    assert.match(err, verdict, format);
    assert.equal((await run([...QUICK, "--format", format, "--quiet"])).err, "");
  }
});

Deno.test("the page tells the command as a shell takes it", async () => {
  const args = [
    ...QUICK,
    "--format",
    "html",
    "--workload",
    "fledgling:count",
    "--draft",
    "it's here",
  ];
  const { out } = await run(args);
  assert.match(
    out,
    /<code>eyrie bench --repeat 2 .* --workload fledgling:count --draft 'it'\\''s here'<\/code>/,
  );
});

Deno.test("--resume: the same command again measures nothing, a wider one the rest", async () => {
  await inFolder(async (path) => {
    const resume = [...QUICK, "--resume", path("rows.jsonl")];
    const first = await run(resume);
    const again = await run(resume);
    assert.deepEqual([again.session.cells.length, again.out], [0, first.out]);
    const wider = await run([...resume, "--batch-sizes", "1,2"]);
    assert.deepEqual(new Set(wider.session.cells.map(({ batch }) => batch)), new Set([2]));
    assert.equal(rowsOf(await Deno.readTextFile(path("rows.jsonl"))).length, 6);
    const lines = wider.out.split("\n").filter((line) => line.startsWith("|"));
    assert.equal(lines.length, 2 + 6, "earlier rows are shown too");
  });
});

Deno.test("--resume: all rows of a case are compared with the best of them, new or not", async () => {
  await inFolder(async (path) => {
    const resume = [...QUICK, "--resume", path("rows.jsonl"), "--format", "json"];
    await run([...resume, "--num-steps", "0"]);
    const { out } = await run([...resume, "--num-steps", "0,3"]);
    const rows: BenchRow[] = JSON.parse(out);
    assert.deepEqual(rows.map((row) => row.gap_to_best_static?.best), Array(3).fill("3 steps"));
  });
});

Deno.test("--resume and --output-file may be one file; a torn line is written over", async () => {
  await inFolder(async (path) => {
    const file = path("rows.jsonl");
    const args = [...QUICK, "--format", "jsonl", "--output", file, "--resume", file];
    await run(args);
    await Deno.writeTextFile(file, '{"format":"ey', { append: true });
    await run([...args, "--batch-sizes", "2"]);
    assert.deepEqual(rowsOf(await Deno.readTextFile(file)).map(({ batch }) => batch), [
      1,
      1,
      1,
      2,
      2,
      2,
    ]);
  });
});

Deno.test("--resume refuses a file that is not its own and leaves it as it is", async () => {
  await inFolder(async (path) => {
    const file = path("notes.txt");
    const foreign = [
      "one line without a newline",
      '{"format":"another"}',
      '{"format":"eyrie-load-1","tor',
      '{"my": "notes"',
      "first\nsecond",
      "[1, 2]",
    ];
    for (const text of foreign) {
      await Deno.writeTextFile(file, text);
      const session = fakeSession();
      await assert.rejects(run([...QUICK, "--resume", file], { session }), (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, /^Cannot resume from ".*": line 1: [^\n]+$/);
        return true;
      });
      assert.deepEqual([await Deno.readTextFile(file), session.cells], [text, []]);
    }
    // An editor took the last newline away: the row still counts.
    const own = path("rows.jsonl");
    await run([...QUICK, "--resume", own]);
    const rows = await Deno.readTextFile(own);
    await Deno.writeTextFile(own, rows.trimEnd());
    const again = await run([...QUICK, "--resume", own, "--batch-sizes", "1,2"]);
    assert.equal(again.session.cells.filter(({ batch }) => batch === 1).length, 0);
    assert.equal((await Deno.readTextFile(own)).slice(0, rows.length), rows);
  });
});

Deno.test("files that are there are refused before anything is opened, and replaced with --force", async () => {
  await inFolder(async (path) => {
    for (const flag of ["--output", "--emit-config"]) {
      const file = path(flag.slice(2));
      const args = ["--repeat", "3", "--output-tokens", "16", "--num-steps", "0,3", flag, file];
      await Deno.writeTextFile(file, "kept");
      const session = fakeSession();
      await assert.rejects(run(args, { session }), {
        name: "UsageError",
        message:
          `Cannot write "${file}": the file exists already; name another one or give --force to replace it`,
      });
      assert.deepEqual([await Deno.readTextFile(file), session.cells], ["kept", []]);
      await run([...args, "--force"]);
      assert.notEqual(await Deno.readTextFile(file), "kept");
      // A name that a script has made, as mktemp does, holds nothing.
      await Deno.writeTextFile(file, "");
      await run(args);
      assert.notEqual(await Deno.readTextFile(file), "");
    }
    const again = fakeIo();
    const halted = fakeSession((spec: CellSpec) => {
      if (spec.repeat === 2) again.interrupt();
      return Promise.resolve(fakeCell(spec));
    });
    const silent = await run([...QUICK, "--repeat", "3", "--quiet"], {
      session: halted,
      io: again,
    });
    silent.requests[0]?.hooks?.onWarning?.("slow");
    assert.deepEqual([silent.code, again.err()], [130, ""]);
    const names = [...Deno.readDirSync(path(""))].map(({ name }) => name).toSorted();
    assert.deepEqual(names, ["emit-config", "output"], "no temporary file is left");
    const same = ["--resume", path("r"), "--output", path("./r"), "--format", "html"];
    await assert.rejects(run([...QUICK, ...same]), {
      name: "UsageError",
      message: /^Cannot use "--resume .*" with "--output .*": the file has a row on each line/,
    });
    assert.equal((await run([...QUICK, "--output", "/dev/null"])).code, 0);
  });
});

Deno.test("--emit-config names no file that holds the results or the rows", async () => {
  await inFolder(async (path) => {
    await Deno.symlink(path(""), path("link"));
    const config = ["--repeat", "3", "--emit-config", path("r")];
    for (const flag of ["--output", "--resume"]) {
      for (const same of [path("r"), path("link/r")]) {
        await assert.rejects(run([...config, flag, same]), {
          name: "UsageError",
          message: `Cannot use "--emit-config ${
            path("r")
          }" with "${flag} ${same}": both name one file`,
        });
      }
    }
    await run([...QUICK, "--repeat", "3", "--output", "/dev/null", "--emit-config", "/dev/null"]);
    assert.deepEqual([...Deno.readDirSync(path(""))].map(({ name }) => name), ["link"]);
  });
});

Deno.test("results that a full disk or the file of --resume does not take are shown", async () => {
  const io = fakeIo();
  const args = [...QUICK, "--batch-sizes", "1,2", "--output", "/dev/full"];
  await assert.rejects(run(args, { io }), { name: "OutputError" });
  assert.match(io.out(), /^\| +1 \| 3 steps /m);
  await inFolder(async (path) => {
    const rows = path("rows.jsonl");
    const session = fakeSession((spec) => {
      Deno.removeSync(rows, { recursive: true });
      Deno.mkdirSync(rows);
      return Promise.resolve(fakeCell(spec));
    });
    const io = fakeIo();
    await assert.rejects(run([...QUICK, "--resume", rows], { session, io }), {
      name: "UsageError",
    });
    assert.match(io.out(), /^\| +1 \| 3 steps /m);
  });
});

Deno.test("a result goes in place of the file that a link leads to", async () => {
  await inFolder(async (path) => {
    await Deno.writeTextFile(path("real"), "");
    await Deno.symlink(path("real"), path("link"));
    await run([...QUICK, "--format", "csv", "--output", path("link")]);
    assert.ok((await Deno.lstat(path("link"))).isSymlink);
    assert.match(await Deno.readTextFile(path("real")), /^acceptance,/);
  });
});

Deno.test("Ctrl+C keeps the rows so far; --resume measures the rest", async () => {
  await inFolder(async (path) => {
    const args = [
      ...QUICK,
      "--repeat",
      "3",
      "--batch-sizes",
      "1,2",
      "--resume",
      path("rows.jsonl"),
    ];
    const io = fakeIo();
    const session = fakeSession((spec: CellSpec) => {
      if (spec.batch === 2 && spec.repeat === 2) io.interrupt();
      return Promise.resolve(fakeCell(spec));
    });
    const stopped = await run([...args, "--emit-config", path("config.json")], { session, io });
    assert.equal(stopped.code, 130);
    assert.match(stopped.err, /warning: stopped: rows of the last case have fewer blocks/);
    const names = [...Deno.readDirSync(path(""))].map(({ name }) => name);
    assert.deepEqual(names, ["rows.jsonl"], "no config of half a sweep");
    const table = stopped.out.split("\n").filter((line) => line.startsWith("|"));
    assert.deepEqual(table.slice(2).map((line) => line.split("|").at(-2)?.trim()), [..."333222"]);
    assert.ok(session.disposed());
    const rest = await run(args);
    assert.equal(rest.code, 0);
    assert.deepEqual(new Set(rest.session.cells.map(({ batch }) => batch)), new Set([2]));
    const resumed = rest.out.split("\n").filter((line) => line.startsWith("|"));
    assert.deepEqual(resumed.slice(2).map((line) => line.split("|").at(-2)?.trim()), [..."333333"]);
  });
});

Deno.test("a case that fails ends the bench with the rows of those before it", async () => {
  const io = fakeIo();
  const session = fakeSession((spec) =>
    spec.batch === 2
      ? Promise.reject(new UsageError("Cannot generate"))
      : Promise.resolve(fakeCell(spec))
  );
  await assert.rejects(run([...QUICK, "--batch-sizes", "1,2"], { session, io }), UsageError);
  assert.equal(io.out().split("\n").filter((line) => line.startsWith("|")).length, 2 + 3);
});

Deno.test("Ctrl+C while the model loads", async () => {
  const io = fakeIo();
  const invocation = parseArguments(["bench"]);
  assert.ok(invocation.command === "bench");
  io.interrupt();
  const open = () => new Promise<never>(() => {});
  const surroundings = { io, args: [], version: "0", open };
  assert.equal(await runBench(invocation.options, surroundings), 130);
  assert.equal(io.out(), "");
});

Deno.test("greedy outputs that differ fail the bench and name the cell", async () => {
  const session = fakeSession((spec) => {
    const result = fakeCell(spec);
    const wrong = spec.setting.kind === "static" && spec.repeat === 0 && spec.batch === 2;
    const requests = result.requests.map((one) => ({
      ...one,
      outputHash: wrong ? "x" : one.outputHash,
    }));
    return Promise.resolve({ ...result, requests });
  });
  const { code, out, err } = await run([...QUICK, "--batch-sizes", "1,2"], { session });
  assert.equal(code, 1);
  assert.match(
    err,
    /^FAILED: .*"3 steps".*different greedy outputs \(fledgling:all, batch 2, .*\)$/m,
  );
  assert.equal(out.split("\n").filter((line) => line.startsWith("|")).length, 2 + 3);
});

Deno.test("--emit-config writes what --policy takes", async () => {
  await inFolder(async (path) => {
    const file = path("mine.json");
    const args = ["--batch-sizes", "1,64", "--num-steps", "0,3", "--repeat", "3"];
    const { err } = await run([...args, "--workload", "phases", "--emit-config", file]);
    const config = JSON.parse(await Deno.readTextFile(file));
    assert.deepEqual(Object.keys(config), ["1", "64"]);
    assert.deepEqual(config["1"].candidate_steps, [3]);
    assert.deepEqual(config["64"].candidate_steps, [0]);
    assert.ok(
      err.endsWith(
        `wrote ${file}, steps 3 at batch 1, 0 at batch 64: --policy ema:config=${file} uses it in generate, chat and serve, ` +
          `bench --policy ema:config=${file} measures it\n`,
      ),
    );
  });
});

Deno.test("on a terminal a bar with the time left, with --quiet nothing", async () => {
  const io = fakeIo({ terminal: true });
  const drawn = (await run(QUICK, { io })).err;
  const err = drawn.replaceAll("\x1b[K", ""); // "to the end of the line"
  assert.match(err, /\rbench \[-+\] warming up batch 1/);
  assert.match(err, /\rbench \[#+-*\] 3 of 6, \d+ s left, batch 1, /);
  assert.ok(!err.includes("\n"));
  assert.ok(drawn.endsWith("\r\x1b[K"), "wiped at the end");
  assert.equal((await run([...QUICK, "--quiet"])).err, "");
});

Deno.test("mistakes are found before anything is opened", async () => {
  const cases: [readonly string[], RegExp][] = [
    [["--workload", "file:/no/such"], /^Cannot read "\/no\/such": /],
    [["--workload", "x"], /^Cannot use "--workload x": allowed is /],
    [["--prompt-tokens", "5"], /^Cannot use "--prompt-tokens" with "--workload fledgling:all": /],
    [["--output", "/no/such/file"], /^Cannot write "\/no\/such\/file": /],
    [["--emit-config", "/no/such/file"], /^Cannot write "\/no\/such\/file": /],
    [["--repeat", "2", "--emit-config", "c"], /^Cannot use "--emit-config" with "--repeat 2": /],
    [["--draft-tree", "foo"], /^Cannot use "--draft-tree foo": cannot read "foo": a tree is /],
    [["--resume", "/no/such/file"], /^Cannot write "\/no\/such\/file": /],
  ];
  for (const [args, message] of cases) {
    const session = fakeSession();
    await assert.rejects(run(args, { session }), (error) => {
      assert.ok(error instanceof UsageError && message.test(error.message), String(error));
      return true;
    });
    assert.equal(session.cells.length, 0);
  }
});
