// Relaxed acceptance: what the flags turn on, and that all output with numbers says that it is not lossless.
import assert from "node:assert/strict";
import { runChat } from "../../src/cli/chat/chat.ts";
import { runGenerate } from "../../src/cli/generate/generate.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { fakeEngine, fakeIo } from "./fake.ts";

const FLAGS = ["--acceptance=relaxed:single=0.3,acc=0.5"];

async function generated(args: readonly string[], stdin = "") {
  const [engine, io] = [fakeEngine(), fakeIo({ stdin })];
  const invocation = parseArguments(["generate", ...args]);
  assert.ok(invocation.command === "generate");
  await runGenerate(invocation, { open: engine.open, io, randomSeed: () => 77 });
  return { opened: engine.opened[0]?.speculation?.acceptThresholds, out: io.out(), err: io.err() };
}

Deno.test("relaxed acceptance: generate opens the engine with it and labels every number", async () => {
  const line = await generated(["hi", ...FLAGS]);
  assert.deepEqual(line.opened, { single: 0.3, acc: 0.5 });
  assert.match(line.err, /50\.0% of drafts accepted, not lossless, seed 77\n$/);
  const table = await generated(["hi", "--stats", ...FLAGS]);
  assert.match(table.err, /^acceptance {2}relaxed, single 0\.3, acc 0\.5: not lossless$/m);
  const label = { lossless: false, accept_threshold_single: 0.3, accept_threshold_acc: 0.5 };
  const { speculative, run } = JSON.parse((await generated(["hi", "--json", ...FLAGS])).out);
  assert.deepEqual({ ...speculative, ...label }, speculative);
  assert.equal(run.flags.acceptance, "relaxed:single=0.3,acc=0.5");
  const batch = await generated(["--batch", "-", ...FLAGS], '{"prompt": "one"}\n');
  const answer = JSON.parse(batch.out);
  assert.deepEqual({ ...answer, ...label }, answer);
  assert.match(batch.err, /tokens \(not lossless\) in/);
});

Deno.test("relaxed acceptance: off where neither threshold is below 1, and then nothing is labelled", async () => {
  const off = ["relaxed:single=1,acc=1", "relaxed:acc=1", "exact"];
  for (const flags of [[], ...off.map((rule) => ["--acceptance", rule])]) {
    for (const how of ["--stats", "--json"]) {
      const { opened, out, err } = await generated(["hi", how, ...flags]);
      assert.equal(opened, undefined);
      assert.doesNotMatch(`${out}${err}`, /lossless/);
    }
  }
  const { opened } = await generated(["hi", "--acceptance", "relaxed:acc=0.5"]);
  assert.deepEqual(opened, { single: 1, acc: 0.5 });
});

Deno.test("relaxed acceptance: the chat's greeting says it", async () => {
  const invocation = parseArguments(["chat", ...FLAGS]);
  assert.ok(invocation.command === "chat");
  const io = fakeIo({ terminal: true, columns: 200 });
  const code = runChat(invocation.options, {
    open: fakeEngine().open,
    io,
    randomSeed: () => 1,
    historyFile: undefined,
  });
  await io.seen("none. Relaxed acceptance (single 0.3, acc 0.5): not lossless. /help lists");
  await io.seen(">>> ");
  io.type("\x04");
  assert.equal(await code, 0);
});

Deno.test("relaxed acceptance: thresholds out of range, and what measures has none", () => {
  for (const rule of ["acc=1.1", "acc=-0.1", "single=x", "", "acc", "single=0.5,depth=1"]) {
    assert.throws(
      () => parseArguments(["generate", `--acceptance=relaxed:${rule}`, "hi"]),
      /: allowed is exact, token, block, or relaxed:single=P,acc=P from 0 to 1$/,
    );
  }
  for (const command of ["bench", "breakeven", "check"]) {
    assert.throws(
      () => parseArguments([command, FLAGS[0] as string]),
      /--acceptance/,
    );
  }
});
