import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import type {
  EngineEvent,
  GenerateRequest,
  GenerateResult,
} from "../../src/engine/schedule/events.ts";
import { EventStream } from "../../src/engine/schedule/event_stream.ts";
import { fakeEngine, streamOf } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { user } from "./server.ts";
import { until } from "./until.ts";

const CHAT = "/v1/chat/completions";
const BODY = { ...user("hi"), max_tokens: 400 };

/** An engine whose answers stop before each word until `open` is called. */
function gated(answer = "one two three four ") {
  let gate = Promise.withResolvers<void>();
  const engine = fakeEngine({ answer: () => answer, beforeWord: () => gate.promise });
  return {
    engine,
    open: () => gate.resolve(),
    close: () => void (gate = Promise.withResolvers()),
  };
}

const REQUEST = { promptIds: [1], sampling: GREEDY, maxTokens: 9, stop: [], ignoreEos: false };

Deno.test("more requests than may wait are refused with 429, and find room later", async () => {
  const { engine, open } = gated();
  await using server = await fakeServer({ maxBatch: 2, maxQueue: 1 }, engine);
  const { table } = server.server.service;
  const first = [1, 2, 3].map(() => server.json(CHAT, BODY));
  await until(() => table.live.size === 3);
  const refused = await server.ask(CHAT, BODY);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal((await refused.json()).error.code, "rate_limit_exceeded");
  assert.equal((await server.ask(CHAT, { ...BODY, n: 4 })).status, 400, "more than ever find room");
  open();
  for (const { choices } of await Promise.all(first)) {
    assert.equal(choices[0].message.content, "one two three four ");
  }
  const again = await server.ask(CHAT, BODY);
  assert.equal(again.status, 200);
  await again.body?.cancel();
});

const LEAVING: readonly { stream?: true; n?: number }[] = [{}, { stream: true }, { n: 2 }, {
  n: 2,
  stream: true,
}];

for (const fields of LEAVING) {
  Deno.test(`a client that leaves: ${JSON.stringify(fields)}`, async () => {
    const { engine, open } = gated();
    await using server = await fakeServer({}, engine);
    const { table } = server.server.service;
    const leaving = new AbortController();
    const asked = server.ask(CHAT, undefined, {
      method: "POST",
      body: JSON.stringify({ ...BODY, ...fields }),
      signal: leaving.signal,
    });
    await until(() => table.live.size === (fields.n ?? 1));
    if (fields.stream) await (await asked).body?.getReader().read();
    leaving.abort();
    await asked.catch(() => {});
    await until(() => engine.requests.every(({ signal }) => signal?.aborted));
    open();
    await until(() => table.live.size === 0);
    assert.deepEqual(server.log, []);
  });
}

/** Counts the pending timers of a minute and more while `use` runs. */
async function longTimers(use: (count: () => number) => Promise<void>): Promise<void> {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const running = new Set<unknown>();
  globalThis.setTimeout = Object.assign((...args: Parameters<typeof set>) => {
    const id = set(...args);
    if ((args[1] ?? 0) >= 60_000) running.add(id);
    return id;
  }, set);
  globalThis.clearTimeout = (id) => {
    running.delete(id);
    clear(id);
  };
  try {
    await use(() => running.size);
  } finally {
    Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
  }
}

Deno.test("streams whose clients leave at any moment leave no timer and no request behind", () =>
  longTimers(async (count) => {
    const engine = fakeEngine({ answer: () => "one two " });
    await using server = await fakeServer({ maxBatch: 8, maxQueue: 100 }, engine);
    const body = JSON.stringify({ ...BODY, stream: true });
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let i = 0; i < 40; i++) {
        const leaving = new AbortController();
        setTimeout(() => leaving.abort(), 2);
        const init = { method: "POST", body, signal: leaving.signal };
        await server.ask(CHAT, undefined, init).then((response) => response.text()).catch(() => {});
      }
    }));
    const { table, ends } = server.server.service;
    await until(() => table.live.size === 0 && ends.size === 0);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(count(), 0);
    assert.deepEqual(server.log, []);
  }));

Deno.test("who does not read a stream holds up nobody, and its answer is made when it reads", async () => {
  const long = "word ".repeat(300);
  const engine = fakeEngine({ answer: () => long });
  await using server = await fakeServer({ maxBatch: 1 }, engine);
  const idle = await server.ask(CHAT, { ...BODY, stream: true });
  const { choices } = await server.json(CHAT, BODY);
  assert.equal(choices[0].message.content, long);
  const { table } = server.server.service;
  assert.deepEqual([table.live.size, table.silentMs], [0, 0], "the engine has nothing to do");
  const text = await idle.text();
  assert.equal(text.match(/"content":"word "/g)?.length, 300);
});

Deno.test("the watchdog: /health is 503 while the engine gives no sign of life", async () => {
  const { engine, open } = gated();
  await using server = await fakeServer({ roundMs: 30 }, engine);
  assert.equal((await server.json("/health")).status, "ok");
  const answer = server.json(CHAT, BODY);
  await until(() => server.server.service.table.silentMs > 40);
  const response = await server.ask("/health");
  const body = await response.json();
  assert.deepEqual([response.status, body.status], [503, "error"]);
  assert.match(body.error.message, /no sign of life/);
  open();
  await answer;
  assert.equal((await server.json("/health")).status, "ok");
});

Deno.test("stopping: what runs is finished, nothing more is taken", async () => {
  const { engine, open } = gated();
  const server = await fakeServer({}, engine);
  const stream = await server.ask(CHAT, { ...BODY, stream: true });
  const kept = new TextDecoder();
  const reader = stream.body?.getReader();
  const first = kept.decode((await reader?.read())?.value);
  const stopped = server.server.stop();
  assert.ok(server.server.service.draining);
  open();
  let text = first;
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    text += kept.decode(part.value);
  }
  assert.match(text, /four [^]*"finish_reason":"stop"[^]*\[DONE\]/);
  await stopped;
  await assert.rejects(server.ask("/health"), "nobody listens");
});

Deno.test("stopping after a delay: health says so while requests are taken; then new ones are 503", async () => {
  const { engine, open, close } = gated();
  const server = await fakeServer({ drainDelayMs: 300 }, engine);
  const stopped = server.server.stop();
  const health = await server.ask("/health");
  assert.deepEqual([health.status, (await health.json()).status], [503, "draining"]);
  const late = server.json(CHAT, BODY);
  await until(() => server.server.service.table.live.size === 1);
  assert.ok(!server.server.service.stopping, "it is taken within the delay");
  await until(() => server.server.service.stopping);
  const refused = await server.ask(CHAT, BODY);
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "1"]);
  assert.match((await refused.json()).error.message, /the server is stopping/);
  const [still] = [await server.json("/health")];
  assert.deepEqual([still.status, still.requests], ["draining", 1]);
  open();
  assert.equal((await late).choices[0].finish_reason, "stop");
  await stopped;
  await assert.rejects(server.ask("/health"), "nobody listens");
  close();
});

Deno.test("stopping: what runs longer than that is ended, and told", async () => {
  const { engine } = gated();
  // The script ends only at the signal.
  engine.submit = ({ signal, promptIds }) =>
    streamOf((async function* () {
      yield { kind: "prefill", done: 0, total: promptIds.length, cached: 0 };
      await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
      yield* fakeEngine().submit({ ...REQUEST, promptIds, signal: AbortSignal.abort() });
    })());
  const server = await fakeServer({ drainMs: 20 }, engine);
  const asked = server.ask(CHAT, BODY);
  await until(() => server.server.service.table.live.size === 1);
  const stopped = server.server.stop();
  const response = await asked;
  assert.equal(response.status, 503);
  assert.match((await response.json()).error.message, /the server is stopping/);
  await stopped;
});

Deno.test("stopping: an answer whose prompt is encoded only then is ended too", async () => {
  const engine = fakeEngine();
  const encoded = Promise.withResolvers<readonly number[]>();
  const signals: (AbortSignal | undefined)[] = [];
  engine.encodePrompt = () => signals.length === 0 ? Promise.resolve([1]) : encoded.promise;
  engine.submit = ({ signal, promptIds }) => {
    signals.push(signal);
    return streamOf((async function* () {
      yield { kind: "prefill", done: 0, total: promptIds.length, cached: 0 };
      if (!signal?.aborted) {
        await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
      }
      yield* fakeEngine().submit({ ...REQUEST, promptIds, signal: AbortSignal.abort() });
    })());
  };
  const server = await fakeServer({ drainMs: 20 }, engine);
  const first = server.ask(CHAT, BODY);
  await until(() => signals.length === 1);
  const second = server.ask(CHAT, BODY);
  await until(() => server.server.service.table.live.size === 2);
  const stopped = server.server.stop();
  assert.equal((await first).status, 503);
  encoded.resolve([1]);
  await until(() => signals[1]?.aborted === true);
  assert.equal((await second).status, 503);
  await stopped;
});

Deno.test("one request whose computation fails ends alone, with 500", async () => {
  const { engine, open } = gated();
  const { submit } = engine;
  const message = 'Cannot generate with "fake": the logits at position 7 are not numbers';
  engine.submit = (request) =>
    request.stop.includes("broken") ? streamOf(broken()) : submit(request);
  async function* broken(): AsyncGenerator<EngineEvent, void, void> {
    yield { kind: "prefill", done: 3, total: 3, cached: 0 };
    yield { kind: "round", ids: [1], accepted: 0, drafts: [], tier: undefined };
    yield { kind: "text", text: "so " };
    await Promise.resolve();
    throw new UsageError(message);
  }
  await using server = await fakeServer({}, engine);
  const other = server.json(CHAT, BODY);
  const response = await server.ask(CHAT, { ...BODY, stop: "broken" });
  assert.equal(response.status, 500);
  assert.deepEqual((await response.json()).error.message, message);
  const events = await server.stream(CHAT, { ...BODY, stop: "broken", stream: true });
  assert.equal(events.at(-1).error.message, message);
  assert.equal(events.at(-2).choices[0].delta.content, "so ");
  assert.equal((await server.ask("/health")).status, 200);
  open();
  assert.equal((await other).choices[0].finish_reason, "stop");
});

Deno.test("a grammar that fails while the text is written is the request's mistake: 400", async () => {
  const engine = fakeEngine();
  engine.submit = () =>
    streamOf((async function* (): AsyncGenerator<EngineEvent, void, void> {
      yield { kind: "prefill", done: 3, total: 3, cached: 0 };
      await Promise.resolve();
      const message = "Cannot constrain the output: its next tokens are not found in 10 s";
      throw new UsageError(message, { field: "grammar" });
    })());
  await using server = await fakeServer({}, engine);
  const body = { ...BODY, response_format: { type: "json_object" } };
  const response = await server.ask(CHAT, body);
  assert.equal(response.status, 400);
  const { error } = await response.json();
  assert.match(error.message, /are not found in 10 s/);
  assert.equal(error.param, "response_format");
});

Deno.test("an engine's thread that ended while nothing ran: 503 at once with the reason, one fault in the log", async () => {
  const engine = fakeEngine();
  await using server = await fakeServer({}, engine);
  assert.equal((await server.ask(CHAT, BODY)).status, 200);
  engine.ping = () => Promise.reject(new Error("the thread has ended"));
  assert.equal((await server.ask("/health")).status, 503);
  for (let i = 0; i < 2; i++) {
    const refused = await server.ask(CHAT, BODY);
    assert.equal(refused.status, 503);
    assert.match((await refused.json()).error.message, /has failed: the thread has ended/);
    await server.ask("/health");
  }
  assert.equal(server.log.length, 1);
  assert.match(server.log[0] ?? "", /^Error: the thread has ended\n/);
});

Deno.test("a mistake of the server after the status was sent is in the log with its stack, whichever API", async () => {
  const engine = fakeEngine();
  engine.submit = () =>
    streamOf((async function* (): AsyncGenerator<EngineEvent, void, void> {
      await Promise.resolve();
      yield { kind: "prefill", done: 3, total: 3, cached: 0 };
      yield { kind: "text", text: "so " };
      // What an answer's end is made of is missing.
      yield { kind: "finish", result: { finishReason: "stop" } as unknown as GenerateResult };
    })());
  await using server = await fakeServer({}, engine);
  const asked = [
    [CHAT, user("x")],
    ["/v1/completions", { prompt: "x" }],
    ["/v1/messages", { ...user("x"), max_tokens: 5 }],
    ["/v1/responses", { input: "x" }],
    ["/api/chat", { model: "fledgling", ...user("x") }],
  ] as const;
  for (const [i, [path, body]] of asked.entries()) {
    const response = await server.ask(path, { ...body, stream: true });
    assert.equal(response.status, 200);
    assert.match(await response.text(), /"internal error; the server's log has the details"/, path);
    assert.equal(server.log.length, i + 1, path);
    assert.match(server.log[i] ?? "", /^TypeError: .*\n +at /);
  }
});

Deno.test("a client that leaves while a round is on its way is no mistake of the server", async () => {
  const engine = fakeEngine();
  let stopped = 0;
  engine.submit = ({ signal }) => {
    const stream = new EventStream(() => {});
    signal?.addEventListener("abort", () => {
      setTimeout(() => {
        stream.push({ kind: "round", ids: [1], accepted: 0, drafts: [], tier: undefined });
        stream.push({ kind: "error", error: new UsageError("interrupted") });
        stopped++;
      }, 10);
    });
    stream.push({ kind: "prefill", done: 3, total: 3, cached: 0 });
    return stream;
  };
  await using server = await fakeServer({}, engine);
  const asked = [
    ["/v1/responses", { input: "x" }],
    [CHAT, { ...user("x"), stream_options: { include_usage: true } }],
    ["/v1/completions", { prompt: "x", stream_options: { include_usage: true } }],
  ] as const;
  for (const [i, [path, body]] of asked.entries()) {
    const leaving = new AbortController();
    const sent = JSON.stringify({ ...body, stream: true });
    await server.ask(path, sent, { method: "POST", body: sent, signal: leaving.signal });
    leaving.abort();
    await until(() => stopped > i && server.server.service.table.live.size === 0);
  }
  await server.ask("/health");
  assert.deepEqual(server.log, []);
});

Deno.test("what the engine says against a prompt names the field that the API has for it", async () => {
  const engine = fakeEngine();
  engine.submit = () =>
    streamOf((async function* (): AsyncGenerator<EngineEvent, void, void> {
      yield* [];
      await Promise.resolve();
      throw new UsageError("Cannot generate: the prompt is empty", { field: "promptIds" });
    })());
  await using server = await fakeServer({}, engine);
  const asked = [
    [CHAT, BODY, "messages"],
    ["/v1/responses", { input: "x" }, "input"],
    ["/v1/completions", { prompt: "x" }, "prompt"],
  ] as const;
  for (const [path, body, param] of asked) {
    assert.equal((await server.json(path, body)).error.param, param);
  }
});

Deno.test("an engine that has failed answers nothing more, and /health says so", async () => {
  const engine = fakeEngine();
  engine.submit = () => {
    const stream = new EventStream(() => {});
    stream.push({ kind: "error", error: new Error("the device is lost") });
    return stream;
  };
  await using server = await fakeServer({}, engine);
  assert.equal((await server.ask(CHAT, BODY)).status, 503);
  const health = await server.ask("/health");
  assert.equal(health.status, 503);
  assert.match((await health.json()).error.message, /the device is lost/);
  const next = await server.ask(CHAT, BODY);
  assert.equal(next.status, 503);
  assert.match((await next.json()).error.message, /the engine has failed/);
  assert.equal(server.log.length, 1);
  assert.match(server.log[0] ?? "", /^Error: the device is lost\n +at /, "its stack is in the log");
});

Deno.test("prompts that are being encoded have a place: more are 429, and refused ones give theirs back", async () => {
  const engine = fakeEngine();
  const { encodePrompt } = engine;
  let gate = Promise.withResolvers<void>();
  engine.encodePrompt = async (input) => {
    await gate.promise;
    if ("messages" in input && input.messages[0]?.content === "bad") throw new UsageError("no");
    return await encodePrompt(input);
  };
  await using server = await fakeServer({ maxBatch: 1, maxQueue: 1 }, engine);
  const { table } = server.server.service;
  for (let i = 0; i < 3; i++) {
    const count = server.ask("/v1/messages/count_tokens", { model: "fledgling", ...user("hi") });
    const chat = server.ask(CHAT, i === 0 ? user("bad") : BODY);
    await until(() => table.live.size === 2);
    assert.deepEqual([table.waiting, table.running], [2, 0]);
    for (const [path, body] of [[CHAT, BODY], ["/tokenize", { content: "a" }]] as const) {
      assert.equal((await server.json(path, body)).error.code, "rate_limit_exceeded", path);
    }
    gate.resolve();
    assert.equal((await count).status, 200);
    assert.equal((await chat).status, i === 0 ? 400 : 200);
    await (await chat).body?.cancel();
    await (await count).body?.cancel();
    await until(() => table.live.size === 0);
    gate = Promise.withResolvers();
  }
});

Deno.test("--max-queue-ms: who waits for a slot for longer gets 503, a running answer goes on", async () => {
  const { engine, open } = queued();
  await using server = await fakeServer({ maxBatch: 1, maxQueueMs: 200 }, engine);
  const running = server.json(CHAT, BODY);
  await until(() => server.server.service.table.running === 1);
  for (const fields of [{}, { stream: true }]) {
    const response = await server.ask(CHAT, { ...BODY, ...fields });
    assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "1"]);
    assert.match((await response.json()).error.message, /within 200 ms \(--max-queue-ms\)/);
  }
  assert.equal(server.server.service.table.live.size, 1);
  open();
  assert.equal((await running).choices[0].finish_reason, "stop");
});

Deno.test("--max-queue-ms holds for the encoding of the prompt too", async () => {
  const engine = fakeEngine();
  const { encodePrompt } = engine;
  const gate = Promise.withResolvers<void>();
  let ended: AbortSignal | undefined;
  engine.encodePrompt = (input, signal) => {
    ended = signal;
    return gate.promise.then(() => encodePrompt(input));
  };
  await using server = await fakeServer({ maxBatch: 1, maxQueueMs: 200 }, engine);
  const response = await server.ask(CHAT, BODY);
  assert.equal(response.status, 503);
  await response.body?.cancel();
  assert.ok(ended?.aborted, "its prompt is not encoded any more");
  gate.resolve();
  await until(() => server.server.service.table.live.size === 0);
  assert.equal(engine.requests.length, 0);
});

Deno.test("a client that leaves while its prompt is encoded ends that, and gives its place back", async () => {
  const engine = fakeEngine();
  const asked = Promise.withResolvers<AbortSignal | undefined>();
  engine.encodePrompt = (_, signal) => {
    asked.resolve(signal);
    // Without a signal the test still ends, by the assertion in its last line.
    const ends = signal ?? AbortSignal.timeout(1000);
    const { promise, reject } = Promise.withResolvers<never>();
    ends.addEventListener("abort", () => reject(ends.reason));
    return promise;
  };
  await using server = await fakeServer({ maxBatch: 1 }, engine);
  for (const [path, body] of [[CHAT, BODY], ["/tokenize", { content: "a" }]] as const) {
    const client = new AbortController();
    const answer = server.ask(path, body, { signal: client.signal }).catch(() => {});
    await asked.promise;
    await until(() => server.server.service.table.live.size === 1);
    client.abort();
    await answer;
    await until(() => server.server.service.table.live.size === 0);
  }
  assert.ok((await asked.promise)?.aborted);
});

Deno.test("a stream that waits for a slot has its headers, comments, and then its answer", async () => {
  const { engine, open } = queued();
  await using server = await fakeServer({ maxBatch: 1 }, engine);
  const running = server.json(CHAT, BODY);
  await until(() => server.server.service.table.running === 1);
  using timers = shortTimers([1000, 10_000]);
  const response = await server.ask(CHAT, { ...BODY, stream: true });
  assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(server.server.service.table.waiting, 1);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const next = async () => (await reader?.read())?.value ?? "";
  assert.equal(await next(), ": waiting\n\n");
  assert.match(await next(), /^(: waiting\n\n)+$/);
  timers[Symbol.dispose]();
  open();
  let text = "";
  for (let part = await next(); part !== ""; part = await next()) text += part;
  assert.match(text, /"content":"four "[^]*\[DONE\]/);
  await running;
});

/** Makes timers of these lengths, ms, take 5 ms. */
function shortTimers(lengths: readonly number[]): Disposable {
  const { setTimeout: set } = globalThis;
  globalThis.setTimeout = Object.assign((...[callback, ms = 0]: Parameters<typeof set>) => (
    set(callback, lengths.includes(ms) ? 5 : ms)
  ), set);
  return { [Symbol.dispose]: () => void Object.assign(globalThis, { setTimeout: set }) };
}

/** An engine with one slot, whose answers stop before each word until `open` is called. */
function queued() {
  const { engine, open } = gated();
  const { submit } = engine;
  let before = Promise.resolve();
  async function* taken(request: GenerateRequest): AsyncGenerator<EngineEvent, void, void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const turn = before;
    before = turn.then(() => promise);
    const left = new Promise<void>((done) => (
      request.signal?.addEventListener("abort", () => done())
    ));
    try {
      await Promise.race([turn, left]);
      if (request.signal?.aborted) return yield* ended(request);
      yield* submit(request);
    } finally {
      resolve();
    }
  }
  engine.submit = (request) => streamOf(taken(request));
  return { engine, open };
}

/** The final event of a request that was aborted before its prompt. */
async function* ended(request: GenerateRequest) {
  for await (const event of fakeEngine().submit(request)) {
    if (event.kind === "finish") yield event;
  }
}

Deno.test("/health: the engine's thread itself is asked, also where nobody waits for an answer", async () => {
  const engine = fakeEngine();
  const gate = Promise.withResolvers<void>();
  engine.ping = () => gate.promise.then(() => 1);
  await using server = await fakeServer({ roundMs: 40 }, engine);
  assert.equal(server.server.service.table.live.size, 0);
  const response = await server.ask("/health");
  const body = await response.json();
  assert.deepEqual([response.status, body.status], [503, "error"]);
  assert.match(body.error.message, /no sign of life/);
  gate.resolve();
  assert.deepEqual(await server.json("/health"), { status: "ok" });
  engine.ping = () => Promise.reject(new Error("the thread has ended"));
  assert.match((await server.json("/health")).error.message, /the thread has ended/);
});

Deno.test("texts and token lists that are too long to look at are 413 or 400", async () => {
  const engine = fakeEngine({ contextLength: 100_000 });
  await using server = await fakeServer({}, engine);
  const content = "x".repeat(1_700_000);
  const bodies = [
    ["/tokenize", { content }],
    ["/v1/messages/count_tokens", { model: "fledgling", ...user(content) }],
    [CHAT, user(content)],
    ["/detokenize", { tokens: Array(100_001).fill(1) }],
  ] as const;
  for (const [path, body] of bodies) {
    const response = await server.ask(path, body);
    assert.equal(response.status, 413, path);
    assert.match((await response.json()).error.message, /allowed are (1600000|100000)$/);
  }
  assert.equal(engine.prompts.length, 0);
});

Deno.test("tokens are counted of texts that fit no context, which an answer to is refused", async () => {
  await using server = await fakeServer({}, fakeEngine({ contextLength: 100 }));
  const content = "x ".repeat(20_000);
  assert.equal((await server.json("/tokenize", { content })).count, 20_001);
  const counted = { model: "fledgling", ...user(content) };
  const { input_tokens } = await server.json("/v1/messages/count_tokens", counted);
  assert.equal(input_tokens, 20_001);
  const answer = await server.ask(CHAT, user(content));
  assert.equal(answer.status, 400);
  assert.equal((await answer.json()).error.type, "exceed_context_size_error");
});

Deno.test("the usage of several answers is that of the first one's prompt, whichever ends first", async () => {
  const engine = fakeEngine({ answer: (n) => `answer ${n}` });
  const { submit } = engine;
  const secondEnded = Promise.withResolvers<void>();
  engine.submit = (request) => {
    const n = engine.requests.length;
    return streamOf((async function* () {
      for await (const event of submit(request)) {
        if (event.kind !== "finish") yield event;
        else {
          if (n === 0) await secondEnded.promise;
          // The second finds the prompt cached that the first has computed.
          yield { ...event, result: { ...event.result, cachedTokens: n } };
        }
      }
    })());
  };
  await using server = await fakeServer({}, engine);
  const { body } = await server.ask(CHAT, { ...BODY, n: 2, stream: true });
  let text = "";
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (/"index":1,[^\n]*"finish_reason":"stop"/.test(text)) secondEnded.resolve();
  }
  const [last] = text.match(/\{.*"usage".*\}/) ?? [""];
  const { choices: [choice], usage } = JSON.parse(last);
  assert.deepEqual([choice.index, usage.prompt_tokens_details.cached_tokens], [0, 0]);
});
