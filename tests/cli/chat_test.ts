import assert from "node:assert/strict";
import { runChat } from "../../src/cli/chat/chat.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { type FakeEngine, fakeEngine, type FakeIo, fakeIo } from "./fake.ts";

function run(args: string[], engine: FakeEngine, io: FakeIo): Promise<number> {
  const invocation = parseArguments(["chat", ...args]);
  assert.ok(invocation.command === "chat");
  return runChat(invocation.options, { open: engine.open, io, randomSeed: () => 77 });
}

/** Pipes lines in; stdout, stderr and what the engine was asked come back. */
async function piped(
  lines: string[],
  options: Parameters<typeof fakeEngine>[0] = {},
  args: string[] = [],
) {
  const engine = fakeEngine(options);
  const io = fakeIo({ stdin: lines.join("\n") });
  const code = await run(args, engine, io);
  return { engine, code, out: io.out(), err: io.err() };
}

Deno.test("piped chat: answers only, a line each, conversation goes on", async () => {
  const { engine, code, out, err } = await piped(["one", "", "two"]);
  assert.equal(code, 0);
  assert.equal(out, "answer 1\nanswer 2\n");
  assert.equal(err, "");
  assert.deepEqual(engine.prompts[1], [
    { role: "user", content: "one" },
    { role: "assistant", content: "answer 1" },
    { role: "user", content: "two" },
  ]);
  assert.ok(engine.disposed());
});

Deno.test("piped chat: commands, mistakes lose nothing, /bye leaves", async () => {
  const { engine, out, err } = await piped(
    ["one", "/nope", "/set top-p 0", "/load /no/such", "/set temperature 0", "/regen", "/bye", "x"],
  );
  assert.equal(out, "answer 1\nanswer 2\n");
  const lines = err.split("\n");
  assert.equal(lines[0], 'Cannot run "/nope": no such command; /help lists them');
  assert.equal(lines[1], 'Cannot use "/set top-p 0": allowed is a number above 0, at most 1');
  assert.match(lines[2] ?? "", /^Cannot load "\/no\/such": /);
  assert.equal(lines[3], "temperature = 0");
  assert.equal(lines[4], "At temperature 0 the answer is the same again.");
  assert.deepEqual(engine.prompts, [
    [{ role: "user", content: "one" }],
    [{ role: "user", content: "one" }],
  ]);
});

Deno.test("piped chat: triple quotes, CRLF, no newline at the end", async () => {
  const { engine } = await piped(['"""', "/bye\r", 'b"""', "last"]);
  assert.deepEqual(engine.requests.length, 2);
  assert.deepEqual(engine.prompts[0], [{ role: "user", content: "/bye\nb" }]);
});

Deno.test("piped chat: triple quotes that never close are told of", async () => {
  const { engine, code, err } = await piped(['"""', "lost"]);
  assert.deepEqual([engine.requests, code], [[], 0]);
  assert.equal(err, 'Not sent: the message has no closing """.\n');
});

Deno.test("piped chat: invalid UTF-8 is a mistake", async () => {
  const io = fakeIo({ stdin: new Uint8Array([0x61, 0xc3, 0x0a]) });
  await assert.rejects(run([], fakeEngine(), io), {
    name: "UsageError",
    message: 'Cannot read a line from "standard input": it is not valid UTF-8',
  });
});

Deno.test("settings reach the engine", async () => {
  const { engine, err } = await piped(
    ["/set seed 10", "/set max-tokens 5", "/set num-steps 6", "a", "/regen", "/set draft off", "b"],
    {},
    ["--stop", "X", "--top-k", "3", "--system", "s", "--ignore-eos"],
  );
  const [first, second, third] = engine.requests;
  assert.deepEqual(first?.sampling, { ...GREEDY, temperature: 0.7, topK: 3, seed: 10 });
  assert.deepEqual([first?.maxTokens, first?.stop, first?.ignoreEos], [5, ["X"], true]);
  assert.deepEqual([first?.numSteps, third?.numSteps], [6, 0]);
  assert.equal(second?.sampling.seed, 11, "/regen moves a fixed seed on");
  assert.deepEqual(engine.prompts[0], [
    { role: "system", content: "s" },
    { role: "user", content: "a" },
  ]);
  assert.match(err, /^seed = 10\nmax-tokens = 5\nnum-steps = 6\ndraft = off\n$/);
});

Deno.test("steps that nobody chose are the engine's to choose", async () => {
  const { engine } = await piped(
    ["a", "/set draft off", "b", "/set draft on", "c", "/set num-steps 0", "d"],
    {},
    ["--preset", "aggressive"],
  );
  assert.deepEqual(engine.requests.map(({ numSteps }) => numSteps), [undefined, 0, undefined, 0]);
});

Deno.test("stats on tells numbers after each answer", async () => {
  const { err } = await piped(["a", "/set stats off", "b"], {}, ["--stats"]);
  assert.match(err, /^2 tokens in .*seed 77\nstats = off\n$/);
});

Deno.test("a full context is told and the oldest exchange goes", async () => {
  const { engine, err } = await piped(["a a a", "b b b", "c c c"], { contextLength: 10 });
  assert.equal(err, "The context (10 tokens) is full: dropped the oldest exchange.\n");
  assert.deepEqual(engine.prompts.at(-1), [
    { role: "user", content: "b b b" },
    { role: "assistant", content: "answer 2" },
    { role: "user", content: "c c c" },
  ]);
});

Deno.test("a message longer than the context is refused, the chat goes on without it", async () => {
  const { engine, out, err } = await piped(["a", "b ".repeat(20), "c"], { contextLength: 10 });
  assert.equal(out, "answer 1\nanswer 2\n");
  assert.match(err, /^Cannot send "the message": it makes a prompt of \d+ tokens/);
  assert.deepEqual(engine.prompts.at(-1), [
    { role: "user", content: "a" },
    { role: "assistant", content: "answer 1" },
    { role: "user", content: "c" },
  ]);
});

Deno.test("an answer that was cut says why", async () => {
  const answer = () => "one two three";
  const cut = await piped(["a"], { answer }, ["--max-tokens", "2"]);
  assert.equal(cut.out, "one two \n");
  assert.match(cut.err, /cut at 2 tokens; \/set max-tokens allows more/);
  const full = await piped(["a"], { answer, contextLength: 3 }, ["--max-tokens", "2"]);
  assert.match(full.err, /The context \(3 tokens\) is full: the answer was cut/);
});

Deno.test("/save and /load over a run", async () => {
  const path = await Deno.makeTempFile();
  const saved = await piped(["/set top-k 5", "a", `/save ${path}`]);
  assert.match(saved.err, /Saved to/);
  const { engine, err } = await piped([`/load ${path}`, "b", "/show"]);
  assert.match(err, /Loaded 2 messages from/);
  assert.match(err, /top-k +5\n/);
  assert.match(err, /messages +4\n/);
  assert.equal(engine.prompts[0]?.length, 3);
  await Deno.remove(path);
});

Deno.test("a model without a chat template cannot chat", async () => {
  await assert.rejects(piped(["a"], { hasChatTemplate: false }), {
    name: "UsageError",
    message: /^Cannot chat with "fake": the checkpoint has no chat template/,
  });
});

Deno.test("Ctrl+C while lines come from a pipe ends the chat with 130", async () => {
  const io = fakeIo();
  const code = run([], fakeEngine(), io);
  io.type("a\n");
  await io.seen("answer 1\n");
  io.interrupt();
  assert.equal(await code, 130);
});
