import assert from "node:assert/strict";
import { connectionLimits, listen } from "../../src/serve/http/listener.ts";
import { fakeEngine, streamOf } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { connect, dripHttp, rawHttp } from "./raw.ts";
import { user } from "./server.ts";
import { until } from "./until.ts";

const CHAT = "/v1/chat/completions";
const GET = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
const TIMEOUT = "HTTP/1.1 408 Request Timeout\r\n";

/** The raw text of a chat request. */
function chat(content: string, fields: Record<string, unknown> = {}, headers = ""): string {
  const body = JSON.stringify({ ...user(content), max_tokens: 400, ...fields });
  return `POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n` +
    `${headers}\r\n${body}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const LIMITS = connectionLimits(0);

/** Timeouts that are short enough to wait for in a test. */
const SHORT = { ...LIMITS, headersMs: 100, requestMs: 300 };

Deno.test("slow-loris: who is slow with its headers or body is closed, and holds up nobody", async () => {
  await using server = await fakeServer({ limits: SHORT });
  const { url, ask } = server;
  const length =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n";
  const slow = [
    ["nothing", rawHttp(url, "")],
    ["headers that stop", rawHttp(url, GET)],
    ["a header a byte at a time", dripHttp(url, `${GET}x: `, "a")],
    ["headers without end", dripHttp(url, GET, "x: a\r\n")],
    ["a body that stops", rawHttp(url, `${length}{"mess`)],
    ["a body a byte at a time", dripHttp(url, length, " ")],
    [
      "chunks a byte at a time",
      dripHttp(url, length.replace(/Content.*/, "Transfer-Encoding: chunked"), "1\r\n \r\n"),
    ],
  ] as const;
  assert.equal((await ask("/health")).status, 200, "meanwhile");
  for (const [name, answer] of slow) assert.ok((await answer).startsWith(TIMEOUT), name);
  const again = await dripHttp(url, `${GET}\r\n${GET}x: `, "a");
  assert.match(again, /^HTTP\/1.1 200 [^]*HTTP\/1.1 408 /, "the second request of a connection");
  assert.equal(server.server.service.table.live.size, 0);
  assert.deepEqual(server.log, []);
});

Deno.test("an answer may take longer than a request, whole and as a stream", async () => {
  const engine = fakeEngine({ answer: () => "one two three ", beforeWord: () => pause(300) });
  await using server = await fakeServer({ maxBatch: 1, limits: SHORT }, engine);
  const whole = server.json(CHAT, user("hi"));
  const events = await server.stream(CHAT, { ...user("hi"), stream: true });
  assert.equal((await whole).choices[0].message.content, "one two three ");
  assert.equal(events.at(-1), "[DONE]");
});

Deno.test("a client that closes its side when it has sent all gets its answer, whole and as a stream", async () => {
  const engine = fakeEngine({ answer: () => "one two three ", beforeWord: () => pause(20) });
  await using server = await fakeServer({}, engine);
  const half = { closeWrite: true };
  const whole = await rawHttp(server.url, chat("hi"), half);
  assert.match(whole, /^(HTTP\/1.1 102 Processing\r\n\r\n)+HTTP\/1.1 200 [^]*"one two three "/);
  const stream = await rawHttp(server.url, chat("hi", { stream: true }), half);
  assert.match(stream, /HTTP\/1.1 200 [^]*"content":"three "[^]*\[DONE\]/);
  for (const part of stream.split("\r\n").filter((line) => line.startsWith("data: "))) {
    assert.match(part, /\n\n$/);
  }
  assert.match(await rawHttp(server.url, `${GET}\r\n`, half), /HTTP\/1.1 200 /);
});

Deno.test("a stream of a client that has closed its side has comments between its events", async () => {
  const isProbed = () => client.text.includes("\r\n:\n\n\r\n");
  const engine = fakeEngine({
    answer: () => "one two ",
    beforeWord: (word) => word === "two " ? until(isProbed) : pause(0),
  });
  await using server = await fakeServer({}, engine);
  using client = await connect(server.url);
  await client.send(chat("hi", { stream: true }));
  await client.closeWrite();
  assert.match(await client.received, /"content":"two "[^]*\[DONE\]/);
});

Deno.test("nothing is written after the end of a stream whose client has closed its side and reads late", async () => {
  // More than the buffers of both sockets take.
  const event = `data: ${"x".repeat(2 ** 24)}\n\n`;
  const headers = { "content-type": "text/event-stream" };
  const server = await listen(
    () => Promise.resolve(new Response(event, { headers })),
    () => new Response(),
    { host: "127.0.0.1", port: 0, limits: LIMITS, newId: () => "id", onUnread: () => {} },
  );
  const client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  await client.write(new TextEncoder().encode(`${GET}\r\n`));
  await client.closeWrite();
  await pause(100);
  const answer = await new Response(client.readable).text();
  assert.ok(answer.endsWith(event));
  await server.close();
});

Deno.test("HTTP/1.0: a probe of health without a Host header is answered", async () => {
  await using server = await fakeServer();
  assert.match(
    await rawHttp(server.url, "GET /health HTTP/1.0\r\n\r\n"),
    /^HTTP\/1.\d 200 [^]*"ok"/,
  );
  assert.match(await rawHttp(server.url, "GET /v1/models HTTP/1.0\r\n\r\n"), /^HTTP\/1.\d 200 /);
});

Deno.test("a connection without requests is closed", async () => {
  await using server = await fakeServer({ limits: { ...LIMITS, idleMs: 50 } });
  assert.match(await rawHttp(server.url, `${GET}\r\n`), /^HTTP\/1.1 200 [^]*"ok"}$/);
});

Deno.test("more connections than that are closed as they come, and find room later", async () => {
  await using server = await fakeServer({ limits: { ...LIMITS, connections: 3 } });
  const open = await Promise.all([1, 2, 3].map(() => connect(server.url)));
  for (const connection of open) await connection.send(GET);
  for (let i = 0; i < 5; i++) assert.equal(await rawHttp(server.url, `${GET}\r\n`), "");
  open.pop()?.[Symbol.dispose]();
  let answer = "";
  while (answer === "") answer = await rawHttp(server.url, `${GET}Connection: close\r\n\r\n`);
  assert.match(answer, /^HTTP\/1.1 200 /);
  for (const connection of open) connection[Symbol.dispose]();
});

Deno.test("headers: a flood is 431, and what two servers could read in two ways is 400", async () => {
  await using server = await fakeServer();
  const { url } = server;
  const flood = Array.from({ length: 5000 }, (_, i) => `x-${i}: ${"a".repeat(100)}\r\n`).join("");
  const long = `x: ${"a".repeat(20_000)}\r\n`;
  const path = `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n`;
  for (const request of [`${GET}${long}\r\n`, `${path}\r\n`]) {
    assert.match(await rawHttp(url, request), /^HTTP\/1.1 431 /);
  }
  // Bytes that are sent after the end may reset the connection before its answer is read.
  const answer = await rawHttp(url, `${GET}${flood}\r\n`);
  assert.ok(answer === "" || answer.startsWith("HTTP/1.1 431 "), answer);
  // Many small ones are all read: the last one counts as well.
  const many = Array.from({ length: 2500 }, () => "a:\r\n").join("");
  const page = `${GET}${many}Origin: http://evil.example.com\r\nConnection: close\r\n\r\n`;
  assert.match(await rawHttp(url, page), /^HTTP\/1.1 403 /);
  const post = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n";
  const smuggled = [
    `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${GET}\r\n`,
    `${post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef`,
    `${post}Content-Length: 5, 6\r\n\r\nabcdef`,
    `${post}Content-Length: -1\r\n\r\n`,
    `${post}Content-Length : 5\r\n\r\nabcde`,
    `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `${GET}x : a\r\n\r\n`,
    `${GET}x: a\0b\r\n\r\n`,
    "GET /health HTTP/1.1\r\n\r\n",
    `GET /health HTTP/1.1\nHost: localhost\n\n`,
    "GET http:// HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "GET nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
  ];
  for (const request of smuggled) {
    const answer = await rawHttp(url, request);
    assert.match(answer, /^HTTP\/1.1 400 /, request);
    assert.match(answer, /^x-request-id: req_\w+\r$/im, request);
    assert.ok(!answer.includes("HTTP/1.1 200"), request);
  }
  const hosts = `${GET}Host: evil.example.com\r\nConnection: close\r\n\r\n`;
  assert.match(await rawHttp(url, hosts), /^HTTP\/1.1 40[03] /, "two Host headers");
  assert.deepEqual(server.log, []);
});

Deno.test("pipelining: one request of a connection after the other, each with its own answer", async () => {
  let [running, most] = [0, 0];
  const engine = fakeEngine({ answer: (n) => `answer ${n} `, beforeWord: () => pause(5) });
  const { submit } = engine;
  engine.submit = (request) =>
    streamOf((async function* () {
      most = Math.max(most, ++running);
      yield* submit(request);
      running--;
    })());
  await using server = await fakeServer({}, engine);
  const contents = ["first", "second", "third"];
  const last = (i: number) => i === contents.length - 1 ? "Connection: close\r\n" : "";
  const requests = contents.map((content, i) => chat(content, {}, last(i)));
  const answers = await rawHttp(server.url, requests.join(""));
  const bodies = answers.split("\r\n\r\n").slice(1).map((text) =>
    JSON.parse(text.split("HTTP/1.1")[0]!)
  );
  assert.deepEqual(
    bodies.map(({ choices }) => choices[0].message.content),
    ["answer 1 ", "answer 2 ", "answer 3 "],
  );
  assert.deepEqual(
    engine.prompts.map((prompt) => typeof prompt === "string" ? prompt : prompt[0]?.content),
    contents,
  );
  assert.equal(most, 1);
});

Deno.test("pipelining: who leaves takes along what waits behind; too many are closed", async () => {
  let gate = Promise.withResolvers<void>();
  const engine = fakeEngine({ answer: () => "one two ", beforeWord: () => gate.promise });
  await using server = await fakeServer({}, engine);
  const { table } = server.server.service;
  for (const stream of [false, true]) {
    engine.requests.length = 0;
    const connection = await connect(server.url);
    await connection.send([1, 2, 3].map((n) => chat(`number ${n}`, { stream })).join(""));
    await until(() => table.live.size === 1);
    connection[Symbol.dispose]();
    await until(() => engine.requests[0]?.signal?.aborted ?? false);
    gate.resolve();
    await until(() => table.live.size === 0);
    await pause(20);
    assert.equal(engine.requests.length, 1, "the others were never begun");
    gate = Promise.withResolvers();
  }
  const many = Array.from({ length: LIMITS.pipelined + 2 }, () => `${GET}\r\n`).join("");
  assert.equal(await rawHttp(server.url, chat("first") + many), "");
  gate.resolve();
  await until(() => table.live.size === 0);
  assert.deepEqual(server.log, []);
});

Deno.test("who reads nothing of a stream for five minutes is gone", async () => {
  const engine = fakeEngine({ answer: () => `${"a".repeat(50_000)} `.repeat(400) });
  await using server = await fakeServer({ maxBatch: 1, maxQueue: 0 }, engine);
  using timers = heldTimers(300_000);
  using connection = await connect(server.url, { reads: false });
  await connection.send(chat("hi", { stream: true }));
  await until(() => engine.requests.length === 1 && server.server.service.table.live.size === 0);
  // Sends until the socket takes no more.
  for (let before = -1; timers.made > before; await pause(50)) before = timers.made;
  const status = async () => {
    const response = await server.ask(CHAT, user("hi"));
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await status(), 429, "its answer takes the only place");
  timers.fire();
  assert.equal(await status(), 200);
});

/** Timers of at least this many milliseconds wait for `fire`. */
function heldTimers(from: number): Disposable & { readonly made: number; fire(): void } {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const held = new Map<unknown, () => void>();
  let made = 0;
  globalThis.setTimeout = Object.assign((...[callback, ms = 0]: Parameters<typeof set>) => {
    const id = set(callback, ms);
    if (ms < from) return id;
    made++;
    held.set(id, callback as () => void);
    return id;
  }, set);
  globalThis.clearTimeout = (id) => {
    held.delete(id);
    clear(id);
  };
  return {
    get made() {
      return made;
    },
    fire() {
      for (const [id, callback] of held) {
        clearTimeout(id as number);
        callback();
      }
    },
    [Symbol.dispose]: () =>
      void Object.assign(globalThis, { setTimeout: set, clearTimeout: clear }),
  };
}

Deno.test("clients that leave before they have read a stream's first event keep no place", async () => {
  // So long that the answer is not over before it is looked for.
  const answer = "one two three ".repeat(10);
  const engine = fakeEngine({ answer: () => answer, beforeWord: () => pause(20) });
  await using server = await fakeServer({ maxBatch: 1, maxQueue: 1 }, engine);
  // The first event has the metadata, and is larger than what a client that reads nothing takes.
  const body = JSON.stringify({
    input: "hi",
    stream: true,
    metadata: { a: "x".repeat(5_000_000) },
  });
  const request = `POST /v1/responses HTTP/1.1\r\nHost: localhost\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  const { live } = server.server.service.table;
  for (let i = 0; i < 6; i++) {
    const client = await connect(server.url, { reads: false });
    await client.send(request);
    await until(() => live.size > 0);
    client[Symbol.dispose]();
    await until(() => live.size === 0);
  }
  const both = await server.json(CHAT, { ...user("hi"), n: 2 });
  assert.equal(both.choices?.length, 2, JSON.stringify(both));
});
