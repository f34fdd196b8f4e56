import assert from "node:assert/strict";
import { runChat } from "../../src/cli/chat/chat.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { UsageError } from "../../src/errors.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import type { ChatMessage } from "../../src/text/chat_template.ts";
import { type FakeEngine, fakeEngine, type FakeIo, fakeIo } from "./fake.ts";

function run(args: string[], engine: FakeEngine, io: FakeIo): Promise<number> {
  const invocation = parseArguments(["chat", ...args]);
  assert.ok(invocation.command === "chat");
  return runChat(invocation.options, { open: engine.open, io, randomSeed: () => 77 });
}

/** Pipes lines in. Returns stdout, stderr and the engine's requests. */
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

Deno.test("piped chat: answers only, a blank line between them, conversation goes on", async () => {
  const { engine, code, out, err } = await piped(["one", "", "two"]);
  assert.equal(code, 0);
  assert.equal(out, "answer 1\n\nanswer 2\n");
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
    ["one", "/nope", "/set top-p 0", "/load /no/such", "/set top-k 4", "/regen", "/exit", "x"],
  );
  assert.equal(out, "answer 1\n\nanswer 2\n");
  const lines = err.split("\n");
  assert.equal(lines[0], 'Cannot run "/nope": no such command; /help lists them');
  assert.equal(lines[1], 'Cannot use "/set top-p 0": allowed is a number above 0, at most 1');
  assert.equal(lines[2], 'Cannot load "/no/such": no such file or folder');
  assert.deepEqual(lines.slice(3), ["top-k = 4", ""]);
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
  assert.match(err, /^2 tokens, .*seed 77\nstats = off\n$/);
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
  assert.equal(out, "answer 1\n\nanswer 2\n");
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
  assert.match(
    cut.err,
    /cut at 2 tokens; \/set max-tokens allows more\. \/regen then answers again/,
  );
  const full = await piped(["a"], { answer, contextLength: 3 });
  assert.match(full.err, /The context \(3 tokens\) is full: the answer was cut; --context-length/);
  assert.match(full.err, /The next message drops the oldest ones; \/drop, \/undo and \/clear/);
});

Deno.test("/save and /load over a run", async () => {
  const path = await Deno.makeTempFile();
  const saved = await piped(["/set top-k 5", "a", `/save -f ${path}`]);
  assert.match(saved.err, /Saved to/);
  const { engine, err } = await piped([`/load ${path}`, "b", "/show"]);
  assert.match(err, /Loaded 2 messages from/);
  assert.match(err, /top-k +5\n/);
  assert.match(err, /messages +4\n/);
  assert.equal(engine.prompts[0]?.length, 3);
  await Deno.remove(path);
});

Deno.test("/load keeps the command line's settings and tells of another model", async () => {
  const path = await Deno.makeTempFile();
  await piped(["/set top-k 5", "/set temperature 2", "a", `/save -f ${path}`]);
  const saved = JSON.parse(await Deno.readTextFile(path));
  await Deno.writeTextFile(path, JSON.stringify({ ...saved, model: "other" }));
  const { engine, err } = await piped([`/load ${path}`, "b"], {}, ["--temperature", "1.5"]);
  assert.match(err, /\nIt is a conversation with other; fake continues it\.\n/);
  const { topK, temperature } = engine.requests[0]?.sampling ?? assert.fail();
  assert.deepEqual([topK, temperature], [5, 1.5]);
  await Deno.remove(path);
});

Deno.test("/save asks a person before it replaces a file, and refuses to a pipe", async () => {
  const path = await Deno.makeTempFile();
  const refused = await piped(["a", `/save ${path}`]);
  assert.equal(
    refused.err,
    `Cannot save "${path}": the file exists already; /save -f ${path} replaces it\n`,
  );
  assert.equal(await Deno.readTextFile(path), "");
  const io = fakeIo({ terminal: true });
  const chatting = run([], fakeEngine(), io);
  for (const [answer, said] of [["n", "Not saved."], ["", "Not saved."], ["y", "Saved to"]]) {
    await io.seen(">>> ");
    io.type(`/save ${path}\r`);
    await io.seen("Replace it? [y/N] ");
    io.type(`${answer}\r`);
    await io.seen(said ?? "");
  }
  io.type("\x04");
  assert.equal(await chatting, 0);
  assert.match(await Deno.readTextFile(path), /eyrie_chat/);
  await Deno.remove(path);
});

Deno.test("/load shows a person what was said, and which settings it brings", async () => {
  const path = await Deno.makeTempFile();
  await piped(["/system Be.", "/set format json", "a\tb", `/save -f ${path}`]);
  const io = fakeIo({ terminal: true });
  const engine = fakeEngine();
  const chatting = run(["--top-k", "3"], engine, io);
  await io.seen(">>> ");
  io.type(`/load ${path}\r`);
  await io.seen("System message: Be.\n>>> a\tb\nanswer 1\n\nLoaded 2 messages from");
  await io.seen("Settings of the file: format = json.\n");
  await io.seen("Settings of the command line stay: top-k.\n");
  await io.seen(">>> ");
  io.type("go on\r");
  await io.seen("answer 1\n");
  io.type("\x04");
  await chatting;
  assert.deepEqual(engine.requests[0]?.grammar, { kind: "json object" });
  await Deno.remove(path);
});

Deno.test("a terminal obeys nothing of what a template's error or a loaded chat says", async () => {
  const path = await Deno.makeTempFile();
  await piped(["a\x1b[2J", `/save -f ${path}`], { answer: () => "b\x1b]0;t\x07" });
  const engine = fakeEngine();
  const open: FakeEngine["open"] = async (options) => ({
    ...await engine.open(options),
    encodePrompt: () => Promise.reject(new UsageError('Cannot use "the chat template": \x1b[31m')),
  });
  const io = fakeIo({ terminal: true });
  const chatting = run([], { ...engine, open }, io);
  await io.seen(">>> ");
  io.type("hello\r");
  await io.seen('Cannot use "the chat template": \uFFFD[31m\n');
  io.type(`/load ${path}\r`);
  await io.seen(">>> a\uFFFD[2J\nb\uFFFD]0;t\uFFFD\n");
  io.type("\x04");
  await chatting;
  await Deno.remove(path);
});

const REMARK = "At temperature 0 the answer is the same again.\n";

Deno.test("/regen at temperature 0 says that nothing changes only where nothing changed", async () => {
  const greedy = ["--temperature", "0"];
  const remarks = async (lines: string[]) =>
    (await piped(["a", ...lines, "/regen"], {}, greedy)).err.split(REMARK).length - 1;
  assert.equal(await remarks([]), 1);
  assert.equal(await remarks(["/regen"]), 2);
  assert.equal(await remarks(["/set top-k 3", "/set stats on"]), 1);
  for (
    const change of [
      "/system x",
      "/set format json",
      "/set stop x",
      "/set think on",
      "/set max-tokens 1",
    ]
  ) {
    assert.equal(await remarks([change]), 0, change);
  }
  assert.equal((await piped(["a", "/set temperature 0", "/regen"])).err, "temperature = 0\n");
});

Deno.test("an answer may use what the context has left, unless it is told", async () => {
  const { engine } = await piped(["a b", "/set max-tokens 7", "c", "/set max-tokens context", "d"]);
  const left = (n: number) => 1000 - (engine.requests[n]?.promptIds.length ?? 0);
  assert.deepEqual(engine.requests.map(({ maxTokens }) => maxTokens), [left(0), 7, left(2)]);
});

Deno.test("answers of a format begin at once, others as the template has it", async () => {
  const { engine } = await piped(["a", "/set format json", "b", "/set format off", "c"]);
  assert.deepEqual(engine.begins, [undefined, "", undefined]);
});

const THOUGHT = { answer: (n: number) => `<think>\nhm ${n}\n</think>\n\nanswer ${n}` };

Deno.test("reasoning is no part of the answer, and stays with the message", async () => {
  const { engine, out, err } = await piped(["one", "two"], THOUGHT, ["--think", "on"]);
  assert.equal(out, "answer 1\n\nanswer 2\n");
  assert.equal(err, "");
  assert.deepEqual(engine.prompts[1], [
    { role: "user", content: "one" },
    { role: "assistant", content: "answer 1", reasoning_content: "hm 1" },
    { role: "user", content: "two" },
  ]);
  assert.deepEqual(engine.templateArguments[0], { enable_thinking: true, thinking: true });
});

Deno.test("reasoning is shown dimmed on a terminal", async () => {
  const io = { ...fakeIo({ terminal: true }), colour: true };
  const chatting = run([], fakeEngine(THOUGHT), io);
  await io.seen(">>> ");
  io.type("one\r");
  await io.seen("answer 1\n");
  io.type("\x04");
  await chatting;
  assert.ok(io.err().includes("\x1b[2mhm\x1b[0m \x1b[2m1\x1b[0m\n\n"));
  assert.equal(io.out(), "answer 1\n");
});

Deno.test("a model with channels: analysis is dimmed, final is the answer and goes on", async () => {
  const io = { ...fakeIo({ terminal: true }), colour: true };
  const engine = fakeEngine({
    answer: (n) =>
      `<|channel|>analysis<|message|>hm ${n}<|start|>assistant<|channel|>final<|message|>answer ${n}`,
  });
  const channels = { name: "harmony", start: -1, message: -2 } as const;
  const reasoning = { marks: undefined, openings: [], switchable: false, channels };
  Object.assign(engine.info, { reasoning });
  const chatting = run([], engine, io);
  for (const n of [1, 2]) {
    await io.seen(">>> ");
    io.type("go\r");
    await io.seen(`answer ${n}\n`);
  }
  io.type("\x04");
  await chatting;
  assert.ok(io.err().includes("\x1b[2mhm\x1b[0m \x1b[2m1\x1b[0m\n\n"), JSON.stringify(io.err()));
  assert.equal(io.out(), "answer 1\nanswer 2\n");
  const [, said] = engine.prompts.at(-1) as readonly ChatMessage[];
  assert.deepEqual(said, { role: "assistant", content: "answer 1", reasoning_content: "hm 1" });
});

Deno.test("/set think, and --template-arg, reach the template", async () => {
  const { engine } = await piped(
    ["a", "/set think off", "b", "/set think auto", "c"],
    {},
    ["--template-arg", "x=[1]"],
  );
  assert.deepEqual(engine.templateArguments, [
    { x: [1] },
    { enable_thinking: false, thinking: false, x: [1] },
    { x: [1] },
  ]);
});

Deno.test("a template without a switch is told of", async () => {
  const { err } = await piped(["a"], { unswitchable: true }, ["--think", "off"]);
  const line = 'the chat template of "fake" has no switch for thinking; --think off does nothing';
  assert.equal(err, `warning: ${line}\n`);
  const set = await piped(["/set think auto", "/set think on"], { unswitchable: true });
  assert.equal(set.err, "think = auto\nthink = on; the chat template has no switch for it\n");
});

Deno.test("a draft that never guesses right is told of once", async () => {
  const many = Array.from({ length: 9 }, () => "a");
  const { err } = await piped(many, { accepted: 0 });
  assert.match(err, /^warning: none of 150 drafted tokens was accepted in 50 rounds: .*\n$/);
  assert.equal((await piped(many)).err, "");
  assert.equal((await piped(many, { accepted: 0 }, ["--quiet"])).err, "");
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
