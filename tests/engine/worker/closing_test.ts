// How an engine in a worker ends, and what callers' functions that throw do to it.
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { engineInWorker } from "../../../src/engine/worker/client.ts";
import { resultOf } from "../../../src/engine/schedule/events.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";

const open = engineInWorker(new URL("fake_worker.ts", import.meta.url));

const REQUEST = {
  promptIds: [1, 2],
  sampling: GREEDY,
  maxTokens: 9,
  stop: [],
  ignoreEos: false,
  numSteps: 0,
};

/** Runs the action where no deadline of the channel ever passes. */
async function withoutDeadlines(action: () => PromiseLike<void>): Promise<void> {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = Object.assign(() => 0, setTimeout) as typeof setTimeout;
  try {
    await action();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
}

Deno.test("an abort ends the opening in the middle of what the thread does", async () => {
  const looping = "postMessage({ kind: 'ready' }); onmessage = () => { for (;;); };";
  const abort = new AbortController();
  const opening = engineInWorker(`data:text/javascript,${looping}`)({
    hooks: { signal: abort.signal },
  });
  await setTimeout(100);
  abort.abort();
  await assert.rejects(opening, { name: "AbortError" });
});

Deno.test("an engine that is closed twice at once asks its thread once", async () => {
  const engine = await open({ limits: { maxBatch: 1 } });
  await withoutDeadlines(async () => {
    await Promise.all([engine[Symbol.asyncDispose](), engine[Symbol.asyncDispose]()]);
  });
  assert.ok(await engine.readStatus());
  await engine.terminate();
});

Deno.test("closing does not wait for a thread that ends meanwhile", async () => {
  const engine = await open({ limits: { maxBatch: 0 } });
  await withoutDeadlines(() => engine[Symbol.asyncDispose]());
  await assert.rejects(engine.readStatus(), /closed too often/);
  await engine.terminate();
});

Deno.test("an engine that is being closed takes no more requests", async () => {
  const engine = await open({});
  const closing = engine[Symbol.asyncDispose]();
  await assert.rejects(resultOf(engine.submit(REQUEST)), { message: "the engine is closed" });
  await closing;
  await assert.rejects(resultOf(engine.submit(REQUEST)), { message: "the engine is closed" });
  await engine.terminate();
});

Deno.test("what a listener throws at the end of an aborted request ends nothing else", async () => {
  const engine = await open({});
  const abort = new AbortController();
  const removed: string[] = [];
  const { signal } = abort;
  signal.removeEventListener = (type: string) => void removed.push(type);
  const kinds: string[] = [];
  const ended = Promise.withResolvers<void>();
  engine.submit({ ...REQUEST, signal }).listen(({ kind }) => {
    kinds.push(kind);
    if (kind === "text") abort.abort();
    if (kind !== "finish") return;
    ended.resolve();
    throw new Error("after all");
  });
  await ended.promise;
  await setTimeout(0);
  assert.deepEqual([kinds, removed], [["round", "text", "finish"], ["abort"]]);
  assert.ok(await engine.ping() >= 0);
  await engine.terminate();
});

Deno.test("a hook that throws, and options that cannot be sent, end the opening", async () => {
  const onProgress = () => {
    throw new Error("not shown");
  };
  await assert.rejects(open({ hooks: { onProgress } }), { message: "not shown" });
  const costs = (() => {}) as unknown as string;
  await assert.rejects(open({ device: { costs } }), { name: "DataCloneError" });
});
