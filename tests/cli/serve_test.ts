import assert from "node:assert/strict";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { runServe } from "../../src/cli/serve/serve.ts";
import type { OpenEngine } from "../../src/engine/engine.ts";
import { fakeEngine, type FakeIo, fakeIo } from "./fake.ts";

/** Runs `eyrie serve` with a fake engine until it answers, asks `path`, and interrupts it. */
async function serveOnce(
  flags: readonly string[],
  path: string,
  warning?: string,
): Promise<FakeIo & { readonly answer: string }> {
  const invocation = parseArguments(["serve", "--port", "0", ...flags]);
  assert.ok(invocation.command === "serve");
  const io = fakeIo();
  const engine = fakeEngine();
  const open: OpenEngine = (given) => {
    if (warning !== undefined) given.hooks?.onWarning?.(warning);
    return engine.open(given);
  };
  const code = runServe(invocation.options, { open, io, version: "0.0.0" });
  await Promise.race([io.seen("http"), code]);
  while (io.out() === "") await new Promise((resolve) => setTimeout(resolve, 2));
  const answer = await (await fetch(`${io.out().trim()}${path}`)).text();
  io.interrupt();
  assert.equal(await code, 0);
  return Object.assign(io, { answer });
}

Deno.test("serve: a model of the hub has the name that was typed, without the commit of its folder", async () => {
  const served = async (...flags: string[]) =>
    JSON.parse((await serveOnce(["--quiet", ...flags], "/v1/models")).answer)
      .data.map(({ id }: { readonly id: string }) => id);
  assert.deepEqual(await served("org/toy"), ["org/toy"]);
  assert.deepEqual(await served("hf://org/toy@v2"), ["org/toy@v2"]);
  assert.deepEqual(await served("org/toy", "--served-model-name", "a,b"), ["a", "b"]);
  assert.deepEqual(await served("org/toy", "--served-model-name", "a,*"), ["a"]);
  assert.deepEqual(await served("org/toy", "--served-model-name", "*"), ["org/toy"]);
  assert.deepEqual(await served(), ["fake"]);
});

Deno.test("serve: interrupted while it loads, it ends after the opening of the engine", async () => {
  const invocation = parseArguments(["serve", "--port", "0"]);
  assert.ok(invocation.command === "serve");
  const io = fakeIo();
  const opening = Promise.withResolvers<never>();
  const ends: string[] = [];
  const run = runServe(invocation.options, { open: () => opening.promise, io, version: "0.0.0" })
    .then((code) => ends.push(`serve with ${code}`));
  await io.seen("listens");
  io.interrupt();
  const [url = ""] = /http:\S+/.exec(io.err()) ?? [];
  // Once the port is closed, nothing else is left to wait for.
  while (await fetch(url).then((answer) => answer.body?.cancel(), () => "closed") !== "closed");
  await new Promise((resolve) => setTimeout(resolve, 0));
  ends.push("opening");
  opening.reject(new Error("interrupted"));
  await run;
  assert.deepEqual(ends, ["opening", "serve with 0"]);
});

Deno.test("serve: a line of the log is not written behind the progress of loading", async () => {
  const invocation = parseArguments(["serve", "--port", "0"]);
  assert.ok(invocation.command === "serve");
  const io = fakeIo({ terminal: true });
  const opening = Promise.withResolvers<never>();
  const open: OpenEngine = ({ hooks }) => {
    hooks?.onProgress?.({ label: "target", done: 1, total: 2 });
    return opening.promise;
  };
  const run = runServe(invocation.options, { open, io, version: "0.0.0" });
  await io.seen("target [");
  const [url = ""] = /http:\S+/.exec(io.err()) ?? [];
  await (await fetch(`${url}/nowhere`)).text();
  await io.seen("/nowhere");
  const written = io.err().replaceAll("\r\x1b[K", "|");
  assert.match(written, /\|[\d:]+ [\d.]+ GET \/nowhere 404/);
  io.interrupt();
  opening.reject(new Error("interrupted"));
  assert.equal(await run, 0);
});

Deno.test("serve: the last line says how long requests have to end, unless there can be none", async () => {
  const lastLine = async (...flags: string[]) =>
    (await serveOnce(flags, "/health")).err().trimEnd().split("\n").at(-1);
  assert.equal(await lastLine(), "stopping");
  assert.equal(
    await lastLine("--drain-delay", "0.01", "--drain-timeout", "5"),
    "stopping: new requests are accepted for 0.01 s more; then running requests have 5 s to end",
  );
});

Deno.test("serve --log-format json: all of stderr is JSON, warnings of the opening included", async () => {
  const io = await serveOnce(["--log-format", "json"], "/nowhere", "it is slow");
  const lines = io.err().trim().split("\n").map((line) => JSON.parse(line));
  const messages = lines.map(({ message }) => message);
  assert.ok(messages.some((message) => message === "warning: it is slow"));
  assert.ok(messages.some((message) => /^OpenAI base URL: +http:.*\/v1$/.test(message)));
  const { path, status } = lines.find(({ message }) => message === "request");
  assert.deepEqual([path, status], ["/nowhere", 404]);
});

Deno.test("serve --quiet writes no request; --log-format text does so all the same", async () => {
  assert.equal((await serveOnce(["--quiet"], "/nowhere")).err(), "");
  const io = await serveOnce(["--quiet", "--log-format", "text"], "/nowhere");
  assert.match(io.err(), /^\S+ \S+ GET \/nowhere 404 in \d+ ms: [^\n]*\n$/);
});
