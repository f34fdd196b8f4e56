import assert from "node:assert/strict";
import { playback, stream, vllm } from "../../remote/playback.ts";
import { fakeEngine, fakeIo } from "../fake.ts";
import { fakeServer } from "../../serve/fake_server.ts";
import { eyrie } from "./run.ts";

async function piped(url: string, lines: readonly string[], ...flags: readonly string[]) {
  const io = fakeIo({ stdin: lines.join("\n") });
  return await eyrie(["chat", "--remote", url, ...flags], { io });
}

Deno.test("chat --remote: the conversation goes on, commands work, the server keeps its defaults", async () => {
  await using server = await fakeServer();
  const { engine } = server;
  const lines = ["one", "two", "/set temperature 0", "/set top-k server", "/regen", "/show"];
  const { code, out, err } = await piped(server.url, lines, "--system", "Be.");
  assert.deepEqual([code, out], [0, "answer 1\n\nanswer 2\n\nanswer 3\n"]);
  assert.deepEqual(engine.prompts[2], [
    { role: "system", content: "Be." },
    { role: "user", content: "one" },
    { role: "assistant", content: "answer 1" },
    { role: "user", content: "two" },
  ]);
  assert.match(
    err,
    /^temperature = 0\ntop-k = server\nmodel {15}fledgling\nserver {14}eyrie at http/,
  );
  assert.match(err, /\ncontext {13}\d+ tokens after the last answer\nmessages {12}4\n/);
  assert.match(err, /\ntemperature {9}0\ntop-p {15}server\n/);
  assert.doesNotMatch(err, /num-steps|draft /);
});

Deno.test("chat --remote: what is wrong is a line, and the chat goes on", async () => {
  let failing = true;
  await using server = playback(({ path }) => {
    if (path === "/v1/models") return JSON.stringify({ data: [{ id: "m" }] });
    if (path !== "/v1/chat/completions") return undefined;
    const text = failing ? "hal" : "whole";
    const end = failing ? "" : "data: [DONE]\n\n";
    failing = false;
    return stream(`data: {"choices":[{"delta":{"content":"${text}"}}]}\n\n${end}`);
  });
  const lines = ["one", "/set draft off", "/set num-steps 3", "/set top-p 0", "/set think", "two"];
  const { code, out, err } = await piped(server.url, lines);
  assert.deepEqual([code, out], [0, "hal\n\nwhole\n"]);
  assert.deepEqual(err.split("\n"), [
    `Cannot get an answer of "${server.url}": its stream was cut off in the middle`,
    'Cannot set "draft": how a server drafts is decided when it is started',
    'Cannot set "num-steps": how a server drafts is decided when it is started',
    'Cannot use "/set top-p 0": allowed is a number above 0, at most 1',
    'Cannot set "think": it takes one value, auto or on or off',
    "",
  ]);
  assert.deepEqual(server.bodies()[1].messages, [{ role: "user", content: "two" }]);
});

Deno.test("chat --remote --stats: a line of acceptance after each answer", async () => {
  await using server = vllm();
  const { out, err } = await piped(server.url, ["Why?"], "--stats");
  assert.equal(out, "The sky is blue today.\n");
  assert.match(err, /^7 tokens, .*44\.4% of drafts accepted by the server's counters\n$/);
});

Deno.test("chat --remote at a terminal: Ctrl+C stops the answer, what came stays", async () => {
  const gate = Promise.withResolvers<void>();
  const engine = fakeEngine({
    answer: () => "one two three",
    beforeWord: (word) => word === "three" ? gate.promise : Promise.resolve(),
  });
  await using server = await fakeServer({}, engine);
  const io = fakeIo({ terminal: true });
  const running = eyrie(["chat", "--remote", server.url, "--no-history"], { io });
  await io.seen("/help lists the commands.");
  await io.seen(">>> ");
  io.type("hi\r");
  await io.seen("two");
  io.type("\x03");
  await io.seen("Stopped.");
  // The server is told.
  while (!engine.requests[0]?.signal?.aborted) await new Promise((then) => setTimeout(then, 2));
  gate.resolve();
  await io.seen(">>> ");
  io.type("/bye\r");
  assert.equal((await running).code, 0);
  assert.match(io.out(), /^one two\n/);
  assert.doesNotMatch(io.out(), /three/);
});

Deno.test("chat: a conversation saved with a server is loaded here, and one from here there", async () => {
  await using server = await fakeServer();
  const path = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.remove(path);
  try {
    await piped(server.url, ["one", `/save ${path}`]);
    const saved = JSON.parse(await Deno.readTextFile(path));
    assert.deepEqual([saved.settings.temperature, saved.settings.draft], ["server", undefined]);
    await Deno.writeTextFile(path, JSON.stringify({ ...saved, settings: { "num-steps": "2" } }));
    const { out, err } = await piped(server.url, [`/load ${path}`, "two"]);
    assert.match(err, /^Loaded 2 messages/);
    assert.equal(out, "answer 2\n");
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("chat --remote at a terminal: Ctrl+C ends it while the server does not answer", async () => {
  const asked = Promise.withResolvers<void>();
  const silent = new AbortController();
  const server = Deno.serve({
    port: 0,
    hostname: "127.0.0.1",
    signal: silent.signal,
    onListen() {},
  }, () => {
    asked.resolve();
    return new Promise<Response>(() => {});
  });
  const io = fakeIo({ terminal: true });
  const running = eyrie([
    "chat",
    "--remote",
    `http://127.0.0.1:${server.addr.port}`,
    "--no-history",
  ], { io });
  await asked.promise;
  io.type("\x03");
  assert.equal((await running).code, 130);
  assert.equal(io.modes.at(-1), false, "the terminal is given back");
  silent.abort();
  await server.finished;
});
