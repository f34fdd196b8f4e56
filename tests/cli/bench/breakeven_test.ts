import assert from "node:assert/strict";
import type { BenchRequest, CellSpec } from "../../../src/measure/runner.ts";
import { runBreakeven } from "../../../src/cli/bench/breakeven.ts";
import { parseArguments } from "../../../src/cli/options/parse.ts";
import { UsageError } from "../../../src/errors.ts";
import { fakeCell, fakeSession } from "../../measure/fake.ts";
import { type FakeIo, fakeIo } from "../fake.ts";

interface Given {
  readonly session?: ReturnType<typeof fakeSession>;
  readonly io?: FakeIo;
}

async function run(line: string, { session = fakeSession(), io = fakeIo() }: Given = {}) {
  const args = line.split(" ").filter((arg) => arg !== "");
  const invocation = parseArguments(["breakeven", ...args]);
  assert.ok(invocation.command === "breakeven");
  const requests: BenchRequest[] = [];
  const code = await runBreakeven(invocation.options, {
    io,
    args,
    version: "0.1.0",
    now: () => new Date(0),
    open: (request) => {
      requests.push(request);
      return Promise.resolve(session);
    },
  });
  return { code, requests, session, out: io.out(), err: io.err() };
}

const refused = async (line: string) => {
  const found = await run(line).then(() => undefined, (error: unknown) => error);
  assert.ok(found instanceof UsageError, line);
  return found.message;
};

Deno.test("breakeven: the table of the lesson's example", async () => {
  const { code, out, requests } = await run("--alpha 0.6 --draft-cost 0.05 --num-steps 8,1-4");
  assert.equal(code, 0);
  assert.deepEqual(requests, []);
  assert.equal(
    out,
    `alpha 0.6, draft cost c 0.05, verify cost v 1

| steps K | tokens a round n | round K c + v | speed-up S | pays from alpha |
| ------: | ---------------: | ------------: | ---------: | --------------: |
|       1 |           1.6000 |         1.050 |      1.52x |           0.050 |
|       2 |           1.9600 |         1.100 |      1.78x |           0.092 |
|       3 |           2.1760 |         1.150 |      1.89x |           0.131 |
|       4 |           2.3056 |         1.200 |      1.92x |           0.167 |
|       8 |           2.4748 |         1.400 |      1.77x |           0.286 |

best        4 steps, 1.92 times as fast as plain decoding
steps       pays from 1 to 29
alpha       pays from 0.050
draft cost  pays below 0.600
limit       2.5000 tokens a round, however many steps
`,
  );
});

Deno.test("breakeven: where nothing pays, and where it pays without end", async () => {
  const never = (await run("--alpha 0.2 --draft-cost 0.3 --verify-cost 1.5 --num-steps 1-2")).out;
  assert.match(never, /^best +0 steps: plain decoding$/m);
  assert.match(never, /^steps +pays at none$/m);
  const endless = (await run("--alpha 1 --draft-cost 0 --verify-cost 2.5")).out;
  assert.match(endless, /^steps +pays from 2 on, without end$/m);
  assert.match(endless, /^limit +none$/m);
  assert.match((await run("--alpha 0.5 --draft-cost 4 --num-steps 1")).out, / never \|$/m);
});

Deno.test("breakeven: JSON has the numbers whole", async () => {
  const { out } = await run("--alpha 0.6 --draft-cost 0.05 --json --num-steps 4");
  const found = JSON.parse(out);
  const { tokens, cost, speedup, min_alpha } = found.rows[0];
  assert.ok(Math.abs(tokens - 2.3056) < 1e-12 && cost === 1.2 && speedup === tokens / cost);
  assert.ok(Math.abs(min_alpha - 0.1669) < 1e-3);
  assert.deepEqual([found.limit, found.best_steps, found.paying], [2.5, 4, { first: 1, last: 29 }]);
  const none = JSON.parse((await run("--alpha 1 --draft-cost 0 --format json")).out);
  assert.deepEqual([none.limit, none.paying], [null, { first: 1, last: null }]);
});

Deno.test("breakeven: a page in a file, and still the table on standard output", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-breakeven-" });
  try {
    const file = `${folder}/page.html`;
    const { out } = await run(`--alpha 0.6 --draft-cost 0.05 --format html --output ${file}`);
    assert.match(out, /^\| steps K \|/m);
    const page = await Deno.readTextFile(file);
    assert.ok(page.startsWith("<!doctype html>") && page.includes(`eyrie breakeven --alpha 0.6`));
    const there = await refused(`--alpha 0.6 --draft-cost 0.05 --output ${folder}`);
    assert.equal(there, `Cannot write "${folder}": it is a folder`);
    const line = `--alpha 0.6 --draft-cost 0.05 --output ${file}`;
    assert.match(await refused(line), /^Cannot write ".*": the file exists already; .*--force/);
    assert.equal(await Deno.readTextFile(file), page);
    assert.equal((await run(`${line} --force`)).out, await Deno.readTextFile(file));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("breakeven: a table that a full disk does not take is shown", async () => {
  const io = fakeIo();
  await assert.rejects(run("--alpha 0.6 --draft-cost 0.05 --output /dev/full", { io }), {
    name: "OutputError",
  });
  assert.match(io.out(), /^\| steps K \|/m);
});

Deno.test("breakeven: what is missing is one line", async () => {
  const missing = 'Cannot run "breakeven": give --alpha and --draft-cost, or --measure';
  for (const line of ["", "--alpha 0.6", "--draft-cost 0.1"]) {
    assert.equal(await refused(line), missing);
  }
  for (
    const line of ["--measure --model m", "--measure --draft none", "--measure --model random:c"]
  ) {
    assert.equal(await refused(line), 'Cannot use "--measure" without a draft: give --draft MODEL');
  }
});

Deno.test("breakeven --measure: every number of steps and plain decoding on the bench's tasks", async () => {
  const { code, out, requests, session, err } = await run(
    "--measure --repeat 3 --output-tokens 16 --batch-sizes 2 --json",
  );
  assert.equal(code, 0);
  const [request] = requests;
  assert.equal(request?.workload.name, "fledgling:all");
  assert.deepEqual(request?.cases.map(({ batch, outputTokens }) => [batch, outputTokens]), [[
    2,
    16,
  ]]);
  const steps = request?.settings
    .map((setting) => setting.kind === "static" ? setting.numSteps : 0);
  assert.deepEqual(steps, [0, 0, 1, 2, 3, 4, 5, 6, 7]);
  assert.match(err, /27 of 27: batch 2/);
  assert.ok(session.disposed());
  const found = JSON.parse(out);
  assert.equal(found.measured.batch, "2");
  assert.ok(found.alpha > 0.35 && found.alpha < 0.85);
  assert.deepEqual(found.measured.steps.map((one: { steps: number }) => one.steps), [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
  ]);
  const best = found.rows[found.best_steps - 1];
  const own = found.measured.steps[found.best_steps - 1];
  assert.deepEqual([found.draft_cost, found.verify_cost], [own.draft_cost, own.verify_cost]);
  assert.equal(best.speedup, found.best_speedup);
});

Deno.test("breakeven --measure: NEXTN drafts from the model's own files", async () => {
  const { requests } = await run(
    "--measure --model m --drafter NEXTN --num-steps 1 --repeat 1",
  );
  assert.deepEqual([requests[0]?.model?.model, requests[0]?.model?.algorithm], ["m", "NEXTN"]);
});

Deno.test("breakeven --measure: Ctrl+C ends it with the blocks that are whole", async () => {
  const io = fakeIo();
  const session = fakeSession((spec: CellSpec) => {
    if (spec.repeat === 2) io.interrupt();
    return Promise.resolve(fakeCell(spec));
  });
  const { code, out } = await run("--measure --num-steps 1,3", { session, io });
  assert.equal(code, 130);
  assert.match(out, /^best +\d steps?, /m);
});

Deno.test("breakeven --measure: Ctrl+C in the first block ends it without a table; different texts are a failure", async () => {
  const io = fakeIo();
  const stopped = fakeSession((spec: CellSpec) => {
    io.interrupt();
    return Promise.resolve(fakeCell(spec));
  });
  const { code, out } = await run("--measure --num-steps 1", { session: stopped, io });
  assert.deepEqual([code, out, stopped.disposed()], [130, "", true]);
  const wrong = fakeSession((spec: CellSpec, _signal, turn) => {
    const cell = fakeCell(spec);
    return Promise.resolve({
      ...cell,
      requests: cell.requests.map((one) => ({ ...one, outputHash: String(turn) })),
    });
  });
  const failed = await run("--measure --num-steps 1", { session: wrong });
  assert.deepEqual([failed.code, failed.out], [1, ""]);
  assert.match(failed.err, /FAILED: .* different greedy outputs/);
});
