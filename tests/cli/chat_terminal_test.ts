import assert from "node:assert/strict";
import { runChat } from "../../src/cli/chat/chat.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { type FakeEngine, fakeEngine, type FakeIo, fakeIo } from "./fake.ts";

const CTRL_C = "\x03";
const CTRL_D = "\x04";
const UP = "\x1b[A";
const LEFT = "\x1b[D";

function start(
  engine: FakeEngine,
  args: string[] = [],
  { historyFile, columns = 80 }: { historyFile?: string; columns?: number } = {},
): { io: FakeIo; code: Promise<number> } {
  const invocation = parseArguments(["chat", ...args]);
  assert.ok(invocation.command === "chat");
  const io = fakeIo({ terminal: true, columns });
  const context = { open: engine.open, io, randomSeed: () => 1, historyFile };
  return { io, code: runChat(invocation.options, context) };
}

/** The newest question of every prompt. */
function questions(engine: FakeEngine): (string | undefined)[] {
  return engine.prompts.map((prompt) =>
    typeof prompt === "string" ? prompt : prompt.at(-1)?.content
  );
}

Deno.test("terminal chat: greeting, prompt, answer, Ctrl+D", async () => {
  const engine = fakeEngine();
  const { io, code } = start(engine);
  await io.seen("fake, fake-eagle3 (EAGLE3), none. /help lists the commands.");
  await io.seen(">>> ");
  io.type("hello\r");
  await io.seen("answer 1\n");
  await io.seen(">>> ");
  io.type(CTRL_D);
  assert.equal(await code, 0);
  assert.equal(io.out(), "answer 1\n", "only the answer goes to stdout");
  assert.ok(io.err().includes("\x1b[?2004h") && io.err().includes("\x1b[?2004l"));
});

Deno.test("terminal chat: editing, history, several lines, paste", async () => {
  const engine = fakeEngine();
  const { io, code } = start(engine, ["--quiet"]);
  await io.seen(">>> ");
  io.type(`helo${LEFT}l\r`);
  await io.seen("answer 1\n");
  io.type(`${UP} again\r`);
  await io.seen("answer 2\n");
  io.type('"""a\r');
  await io.seen("... ");
  io.type('b"""\r');
  await io.seen("answer 3\n");
  io.type("\x1b[200~/x\r\ny\n\x1b[201~");
  io.type(" tail\r");
  await io.seen("answer 4\n");
  io.type("/bye\r");
  assert.equal(await code, 0);
  assert.deepEqual(questions(engine), ["hello", "hello again", "a\nb", "/x\ny\n tail"]);
});

Deno.test("terminal chat: Ctrl+C throws the line away, on an empty line says how to leave", async () => {
  const engine = fakeEngine();
  const { io, code } = start(engine);
  await io.seen(">>> ");
  io.type(`wrong${LEFT}${LEFT}${CTRL_C}`);
  await io.seen(">>> ");
  io.type(CTRL_C);
  await io.seen("Use Ctrl+D or /bye to leave.");
  io.type('"""half\r');
  await io.seen("... ");
  io.type(CTRL_C);
  await io.seen(">>> ");
  io.type("right\r");
  await io.seen("answer 1\n");
  io.type(CTRL_D);
  assert.equal(await code, 0);
  assert.deepEqual(questions(engine), ["right"]);
});

Deno.test("terminal chat: Ctrl+C stops the answer, not the program", async () => {
  const engine = fakeEngine({
    answer: (n) => n === 1 ? "one two three" : "done",
    beforeWord: async (word) => {
      if (word !== "two ") return;
      io.type(CTRL_C);
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  });
  const { io, code } = start(engine);
  await io.seen(">>> ");
  io.type("count\r");
  await io.seen("Stopped.");
  io.type("go on\r");
  await io.seen("done\n");
  io.type(CTRL_D);
  assert.equal(await code, 0);
  assert.equal(io.out(), "one\ndone\n");
  assert.deepEqual(engine.prompts[1], [
    { role: "user", content: "count" },
    { role: "assistant", content: "one " },
    { role: "user", content: "go on" },
  ]);
});

Deno.test("terminal chat: an answer stopped before its first word never was", async () => {
  const engine = fakeEngine({
    beforeWord: async () => {
      if (engine.requests.length > 1) return;
      io.type(CTRL_C);
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  });
  const { io, code } = start(engine);
  await io.seen(">>> ");
  io.type("never\r");
  await io.seen("Stopped.");
  io.type("again\r");
  await io.seen("answer 2\n");
  io.type(CTRL_D);
  await code;
  assert.deepEqual(engine.prompts[1], [{ role: "user", content: "again" }]);
});

Deno.test("terminal chat: keys typed during an answer wait and do not garble it", async () => {
  const engine = fakeEngine({
    answer: (n) => n === 1 ? "one two" : "next",
    beforeWord: async (word) => {
      if (word !== "two") return;
      io.type("early\rhalf");
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  });
  const { io, code } = start(engine);
  await io.seen(">>> ");
  io.type("first\r");
  await io.seen("two\n");
  await io.seen(">>> early\n");
  await io.seen("next\n");
  await io.seen("half");
  io.type(" line\r");
  await io.seen("next\n");
  io.type(CTRL_D);
  await code;
  assert.deepEqual(questions(engine), ["first", "early", "half line"]);
  assert.equal(io.out(), "one two\nnext\nnext\n");
  assert.equal(io.err().split("early").length, 2, "shown once");
});

Deno.test("terminal chat: what is typed while the model loads is in the first prompt", async () => {
  const engine = fakeEngine();
  const gate = Promise.withResolvers<void>();
  const open: FakeEngine["open"] = async (options) => {
    await gate.promise;
    return await engine.open(options);
  };
  const { io, code } = start({ ...engine, open });
  io.type("first\rsecond");
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!io.err().includes("first"), "keys do not draw into the progress");
  gate.resolve();
  await io.seen(">>> first\n");
  await io.seen("answer 1\n");
  await io.seen(">>> second");
  io.type("\r");
  await io.seen("answer 2\n");
  io.type(CTRL_D);
  assert.equal(await code, 0);
  assert.deepEqual(questions(engine), ["first", "second"]);
});

Deno.test("terminal chat: Ctrl+C while the model loads gives it up", async () => {
  const engine = fakeEngine();
  const { io, code } = start({ ...engine, open: () => new Promise(() => {}) });
  io.type(CTRL_C);
  assert.equal(await code, 130);
  assert.equal(io.modes.at(-1), false, "the terminal is given back");
});

Deno.test("terminal chat: a signal from outside leaves with 130", async () => {
  const { io, code } = start(fakeEngine());
  await io.seen(">>> ");
  io.interrupt();
  assert.equal(await code, 130);
});

Deno.test("terminal chat: the next chat recalls messages, also of several lines; /history shows them", async () => {
  const dir = await Deno.makeTempDir();
  const historyFile = `${dir}/chat_history`;
  const first = start(fakeEngine(), ["--quiet"], { historyFile });
  await first.io.seen(">>> ");
  first.io.type("one\r");
  await first.io.seen("answer 1\n");
  for (const [line, prompt] of [['"""a', "... "], ['b"""', "answer 2\n"]]) {
    first.io.type(`${line}\r`);
    await first.io.seen(prompt ?? "");
  }
  first.io.type(CTRL_D);
  await first.code;

  const engine = fakeEngine();
  const second = start(engine, ["--quiet"], { historyFile });
  await second.io.seen(">>> ");
  second.io.type(`${UP}\r`);
  await second.io.seen("answer 1\n");
  second.io.type("/history 2\r");
  await second.io.seen('"""a\u240Ab"""\n/history 2\n');
  second.io.type("/bye\r");
  await second.code;
  assert.deepEqual(questions(engine), ["a\nb"]);

  const third = start(fakeEngine(), ["--quiet", "--no-history"], { historyFile });
  await third.io.seen(">>> ");
  third.io.type("/history\r");
  await third.io.seen("\n/history\n");
  third.io.type("secret\r");
  await third.io.seen("answer 1\n");
  third.io.type(CTRL_D);
  await third.code;
  const kept = await Deno.readTextFile(historyFile);
  assert.equal(kept, '"one"\n"\\"\\"\\"a\\nb\\"\\"\\""\n"/history 2"\n"/bye"\n');
  await Deno.remove(dir, { recursive: true });
});

Deno.test("terminal chat: answers and notes are wrapped at the terminal's width", async () => {
  const answer = () =>
    "a **bold** answer that is longer than the terminal is wide\n```\nbut code is left as it is, all of it";
  const { io, code } = start(fakeEngine({ answer }), [], { columns: 30 });
  await io.seen("fake, fake-eagle3 (EAGLE3),\nnone. /help lists the\ncommands.\n");
  io.type("hello\r");
  await io.seen("all of it\n");
  io.type(CTRL_D);
  await code;
  assert.equal(
    io.out(),
    "a **bold** answer that is\nlonger than the terminal is\nwide\n```\nbut code is left as it is, all of it\n",
  );
});
