import assert from "node:assert/strict";
import type { CostsRequest, CostsSession } from "../../src/measure/costs/costs_session.ts";
import { runCosts } from "../../src/cli/bench/costs.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import type { MeasuredCosts } from "../../src/engine/tune/costs/measure.ts";
import { UsageError } from "../../src/errors.ts";
import { parseCosts } from "../../src/speculate/costs/parse.ts";
import { SIMPLE } from "../speculate/costs/table.ts";
import { type FakeIo, fakeIo } from "./fake.ts";

const MEASURED: MeasuredCosts = {
  table: SIMPLE,
  readings: [],
  seconds: 11.25,
  repeats: 7,
  probes: 20,
  skipped: ["rounds of 3", "rounds of 5", "rounds of 6", "rounds of 7"],
};

async function run(
  args: readonly string[],
  { measured = MEASURED, interrupt = false, io = fakeIo() }: {
    readonly measured?: MeasuredCosts;
    readonly interrupt?: boolean;
    readonly io?: FakeIo;
  } = {},
) {
  const invocation = parseArguments(["profile", ...args]);
  assert.ok(invocation.command === "profile");
  const requests: CostsRequest[] = [];
  const asked: Parameters<CostsSession["measure"]>[0][] = [];
  let disposed = 0;
  const session: CostsSession = {
    cache: "/cache/eyrie/costs.json",
    measure(of) {
      asked.push(of);
      of.onProgress?.(0.5);
      if (interrupt) io.interrupt();
      return Promise.resolve(measured);
    },
    [Symbol.dispose]: () => void disposed++,
  };
  const open = (request: CostsRequest) => {
    requests.push(request);
    return Promise.resolve(session);
  };
  const code = await runCosts(invocation.options, { open, io });
  assert.equal(disposed, 1);
  return { code, request: requests[0], asked: asked[0], out: io.out(), err: io.err() };
}

Deno.test("profile: the table to read; what it is kept in is said on stderr", async () => {
  const { code, request, asked, out, err } = await run([]);
  assert.equal(code, 0);
  assert.deepEqual([request?.maxBatch, request?.numSteps, asked?.seconds], [8, 7, 12]);
  assert.equal(asked?.keep, true);
  assert.equal(err, "cost table in /cache/eyrie/costs.json\n");
  assert.match(out, /^model target, draft head\nadapter an adapter\n/);
  assert.match(
    out,
    /20 things measured 7 times in 11\.3 s: medians; no time or room for rounds of 3, rounds of 5, rounds of 6 and 1 more: interpolated \(--duration\)/,
  );
  // verify 10 and the host; then extend of 2 rows and a verify of 2.
  assert.match(out, /\| {2,}1 \| 10\.4 \| 12\.8 \|/);
  assert.match(out, /\| batch \\ lag \| {4}1 \|/);
  assert.match(out, /c_prefill\(lag, batch\)/);
  assert.match(out, /fit error at most 2\.0%/);
});

Deno.test("profile: a table that a full disk does not take is shown", async () => {
  const io = fakeIo();
  await assert.rejects(run(["--output", "/dev/full"], { io }), { name: "OutputError" });
  assert.match(io.out(), /^model target, draft head/);
});

Deno.test("profile --output: a cost file that is read again, and the cache is left alone", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-profile-" });
  try {
    const path = `${folder}/cost.json`;
    const args = ["--output", path, "--max-batch", "4", "--num-steps", "3", "--duration", "2.5"];
    const { request, asked, err } = await run([...args, "--model", "m", "--draft", "d"]);
    assert.deepEqual([request?.maxBatch, request?.numSteps], [4, 3]);
    assert.deepEqual([request?.model?.model, request?.model?.draft], ["m", "d"]);
    assert.deepEqual([asked?.seconds, asked?.keep], [2.5, false]);
    assert.deepEqual(parseCosts(JSON.parse(await Deno.readTextFile(path))), SIMPLE);
    assert.equal(err, `cost table in ${path}\n`);
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["cost.json"]);
    const there = await run(["--output", path]).catch((error: unknown) => error);
    assert.ok(there instanceof UsageError && there.message.endsWith("give --force to replace it"));
    await run(["--output", path, "--force"]);
    const refused = await run(["--output", folder]).catch((error: unknown) => error);
    assert.ok(refused instanceof UsageError);
    assert.match(refused.message, /^Cannot write ".*": /);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("profile: Ctrl+C writes nothing", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-profile-" });
  try {
    const { code, out } = await run(["--output", `${folder}/cost.json`], { interrupt: true });
    assert.deepEqual([code, out, [...Deno.readDirSync(folder)]], [130, "", []]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("profile --json: the table whole, and what was left out", async () => {
  const { out, err } = await run(["--json", "--quiet"]);
  const { table, skipped, seconds, repeats } = JSON.parse(out);
  assert.deepEqual(parseCosts(table), SIMPLE);
  assert.deepEqual([skipped, seconds, repeats, err], [MEASURED.skipped, 11.25, 7, ""]);
});

Deno.test("profile: without a draft only the target is measured", async () => {
  const alone = { level: [], extend: [], catchUp: [] };
  const { draft: _, ...rest } = SIMPLE;
  const measured = { ...MEASURED, table: { ...rest, ...alone, draft: undefined } };
  const { request, out } = await run(["--model", "m"], { measured });
  assert.equal(request?.numSteps, 0);
  assert.match(out, /^model target, draft none/);
  assert.doesNotMatch(out, /Rounds|Drafting|Catching/);
});

Deno.test("profile: flags that cannot be", () => {
  const cases = [
    ["--model m --num-steps 3", 'Cannot use "--num-steps 3" with "--model": it needs a draft; '],
    ["--draft random:x", 'Cannot use "--draft random:x": it needs --model random:CONFIG.json'],
    ["--duration 0", 'Cannot use "--duration 0": allowed is a number above 0, at most 3600'],
  ] as const;
  for (const [args, message] of cases) {
    assert.throws(
      () => parseArguments(["profile", ...args.split(" ")]),
      (error) => error instanceof UsageError && error.message.startsWith(message),
      args,
    );
  }
});
