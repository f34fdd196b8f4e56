import assert from "node:assert/strict";
import { type LogFormat, openLog } from "../../src/serve/service/log.ts";
import type { ServerOptions } from "../../src/serve/server.ts";
import { openTrace } from "../../src/serve/service/trace.ts";
import { fakeEngine, streamOf } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { rawHttp } from "./raw.ts";
import { type Json, user } from "./server.ts";

const CHAT = "/v1/chat/completions";

/** A server whose log is kept. `lines` resolves when the log has that many lines. */
async function logging(
  format: LogFormat,
  { engine = fakeEngine(), ...options }: Partial<ServerOptions> & {
    readonly engine?: ReturnType<typeof fakeEngine>;
  } = {},
) {
  const written: string[] = [];
  const log = openLog({ format, write: (line) => void written.push(line) });
  const server = await fakeServer({ log, ...options }, engine);
  return {
    ...server,
    written,
    async lines(count: number): Promise<readonly string[]> {
      while (written.length < count) await pause();
      return written;
    },
  };
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2));
}

Deno.test("log: a line of JSON for each request, with its tokens, times and client", async () => {
  await using server = await logging("json");
  const headers = { "x-request-id": "from/me-1" };
  const response = await server.ask(CHAT, undefined, {
    method: "POST",
    headers,
    body: JSON.stringify(user("a secret")),
  });
  assert.equal(response.headers.get("x-request-id"), "from/me-1");
  await response.text();
  const [line = ""] = await server.lines(1);
  const { time, ms, queue_ms, first_token_ms, client, ...rest } = JSON.parse(line) as Json;
  assert.ok(Date.parse(time) > 0 && ms >= first_token_ms && first_token_ms >= queue_ms, line);
  assert.match(client, /127\.0\.0\.1$/);
  assert.deepEqual(rest, {
    level: "info",
    message: "request",
    id: "from/me-1",
    method: "POST",
    path: CHAT,
    status: 200,
    complete: true,
    prompt_tokens: 2,
    cached_tokens: 0,
    output_tokens: 2,
    accept_length: 0.5,
  });
  assert.ok(!line.includes("secret") && !line.includes("answer"));
});

Deno.test("log: what is refused has its reason, streams their tokens, polls of health no line", async () => {
  await using server = await logging("text");
  assert.equal((await server.ask("/health")).status, 200);
  await (await server.ask("/metrics")).text();
  const refused = await server.ask(CHAT, { ...user("hi"), temperature: -1 });
  const id = refused.headers.get("x-request-id") ?? "";
  await refused.text();
  await server.lines(1);
  await server.stream(CHAT, { ...user("hi"), stream: true });
  await server.lines(2);
  await (await server.ask("/nowhere?key=secret")).text();
  const [first = "", second = "", third = ""] = await server.lines(3);
  assert.match(id, /^req_\w{24}$/);
  assert.match(
    first,
    /^\d\d:\d\d:\d\d \S+ POST \/v1\/chat\/completions 400 in \d+ ms: Cannot use "/,
  );
  assert.ok(first.endsWith(`[${id}]`), first);
  assert.match(second, / 200 in \d.*: prompt 1, output 2, accept length 0\.50, queued \d.*, first/);
  assert.match(third, / GET \/nowhere 404 in \d+ ms: there is no GET \/nowhere here \[req_/);
  assert.equal(server.written.length, 3);
});

Deno.test("log: a request id of the client is bounded, and no line can be forged by it", async () => {
  await using server = await logging("text");
  const ask = async (id: string) => {
    const init = { headers: { "x-request-id": id } };
    const response = await server.ask("/v1/models", undefined, init);
    await response.text();
    return response.headers.get("x-request-id") ?? "";
  };
  assert.equal(await ask("a".repeat(5000)), "a".repeat(128));
  assert.equal(await ask("a b\tc\u00e9]["), "abc");
  assert.match(await ask("[]"), /^req_/);
  const raw = "GET /x%0Ay%1b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  await rawHttp(server.url, raw);
  // deno-lint-ignore no-control-regex -- these are what it is about
  for (const line of await server.lines(4)) assert.ok(!/[\x00-\x1f]/.test(line), line);
});

Deno.test("log: a client that leaves, and an answer that fails in its middle", async () => {
  let gate = Promise.withResolvers<void>();
  const engine = fakeEngine({ answer: () => "one two ", beforeWord: () => gate.promise });
  await using server = await logging("json", { engine });
  const leaving = new AbortController();
  const body = JSON.stringify(user("hi"));
  const init = { method: "POST", body, signal: leaving.signal };
  const asked = server.ask(CHAT, undefined, init).catch(() => {});
  while (engine.requests.length < 1) await pause();
  leaving.abort();
  await asked;
  const { status, complete } = JSON.parse((await server.lines(1))[0] ?? "") as Json;
  assert.deepEqual([status, complete], [499, false]);
  gate.resolve();
  gate = Promise.withResolvers();
  engine.submit = () =>
    streamOf((async function* () {
      yield { kind: "prefill", done: 1, total: 1, cached: 0 };
      await Promise.resolve();
      throw new Error("the device is lost");
    })());
  await (await server.ask(CHAT, { ...user("hi"), stream: true })).text();
  const [fault, failed] = (await server.lines(3)).slice(1).map((line) => JSON.parse(line) as Json);
  assert.equal(fault.level, "error");
  assert.match(fault.message, /^Error: the device is lost\n +at /);
  assert.deepEqual([failed.status, failed.reason], [200, "the device is lost"]);
});

Deno.test("log: prompts and outputs where they are asked for", async () => {
  await using server = await logging("json", { logPrompts: true });
  await server.json(CHAT, user("a secret"));
  const { prompts, outputs } = JSON.parse((await server.lines(1))[0] ?? "") as Json;
  assert.equal(prompts[0].messages[0].content, "a secret");
  assert.deepEqual(outputs, ["answer 1"]);
  const call = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>';
  await using calling = await logging("json", {
    logPrompts: true,
    engine: fakeEngine({ answer: () => call }),
  });
  const tools = [{ type: "function", function: { name: "f" } }];
  await calling.json(CHAT, { ...user("a secret"), tools });
  const called = JSON.parse((await calling.lines(1))[0] ?? "") as Json;
  assert.deepEqual(called.outputs, ['f {"a": 1}']);
});

Deno.test("log: a request that stands still is written once", async () => {
  const gate = Promise.withResolvers<void>();
  const engine = fakeEngine({ beforeWord: () => gate.promise });
  await using server = await logging("text", { engine, stallMs: 1 });
  const answer = server.json(CHAT, user("hi"));
  const [line = ""] = await server.lines(1);
  assert.match(line, /^\S+ stall: no sign of the engine for \d+ s, after 0 output tokens/);
  gate.resolve();
  await answer;
  await server.lines(2);
  assert.ok(!server.written[1]?.includes("stall"));
});

Deno.test("log: a line is written once for its key, and keys are bounded", () => {
  const lines: string[] = [];
  const log = openLog({ format: "text", write: (line) => void lines.push(line) });
  for (let i = 0; i < 3; i++) log.once("a", "the field a\nis ignored");
  assert.deepEqual(lines, ["the field a\\u000ais ignored"]);
  for (let i = 0; i < 5000; i++) log.once(`key ${i}`, "x");
  assert.equal(lines.length, 1000);
});

Deno.test("log: what is no request has a line with its status and reason", async () => {
  await using server = await logging("text");
  const long = `GET / HTTP/1.1\r\nHost: a\r\nx: ${"a".repeat(20_000)}\r\n\r\n`;
  assert.match(await rawHttp(server.url, "BOGUS \x1b / HTTP/9.9\r\n\r\n"), /^HTTP\/1.1 400 /);
  assert.match(await rawHttp(server.url, long), /^HTTP\/1.1 431 /);
  await rawHttp(server.url, "", { closeWrite: true });
  const [first = "", second = ""] = await server.lines(2);
  assert.match(first, /^\d\d:\d\d:\d\d \S*127\.0\.0\.1 no request 400: HPE_\w+ \[req_\w+\]$/);
  assert.match(second, / no request 431: HPE_HEADER_OVERFLOW \[req_\w+\]$/);
  assert.equal(server.written.length, 2);
});

Deno.test("log: where it cannot be written the server answers all the same", async () => {
  const log = openLog({
    format: "text",
    write: () => {
      throw new Deno.errors.BrokenPipe("nobody reads");
    },
  });
  await using server = await fakeServer({ log });
  for (let i = 0; i < 3; i++) await (await server.ask("/nowhere")).text();
  assert.equal((await server.json("/health")).status, "ok");
});

Deno.test("log: polls of health have a line when the status changes", () => {
  const written: string[] = [];
  const log = openLog({ format: "text", write: (line) => void written.push(line) });
  for (const status of [200, 503, 503, 503, 200, 200]) {
    const request = new Request("http://127.0.0.1/health");
    const trace = openTrace(request, { address: undefined, keepsTexts: false });
    log.access(trace, { status, complete: true });
  }
  assert.deepEqual(written.map((line) => /health (\d+)/.exec(line)?.[1]), ["503", "200"]);
});
