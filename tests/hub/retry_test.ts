import assert from "node:assert/strict";
import { persist, TransientError } from "../../src/hub/retry.ts";

/** A function that fails the given number of times, then succeeds. */
function failing(times: number, waitMs = 0): () => Promise<string> {
  return () => {
    times -= 1;
    return times >= 0 ? Promise.reject(new TransientError("busy", waitMs)) : Promise.resolve("ok");
  };
}

Deno.test("one attempt more than there are waits", async () => {
  assert.equal(await persist("Cannot x", failing(2), { waits: [1, 1] }), "ok");
  await assert.rejects(persist("Cannot x", failing(3), { waits: [1, 1] }), {
    name: "UsageError",
    message: "Cannot x: busy, tried 3 times",
  });
  await assert.rejects(persist("Cannot x", failing(1), { waits: [] }), {
    message: "Cannot x: busy",
  });
});

Deno.test("progress of a megabyte counts the attempts anew", async () => {
  let received = 0;
  const fails = failing(5);
  const attempt = () => {
    received += 1 << 20;
    return fails();
  };
  assert.equal(await persist("x", attempt, { waits: [1], received: () => received }), "ok");
});

Deno.test("a server that wants more patience than anybody has, other errors, an abort", async () => {
  await assert.rejects(persist("x", failing(1, 1e9), { waits: [1] }), { message: "x: busy" });
  const bug = () => Promise.reject(new RangeError("bug"));
  await assert.rejects(persist("x", bug, { waits: [1] }), { name: "RangeError" });
  const stop = new AbortController();
  const waiting = persist("x", failing(9), { waits: [60_000], signal: stop.signal });
  queueMicrotask(() => stop.abort());
  await assert.rejects(waiting, { name: "AbortError" });
});

Deno.test("long waits are told", async () => {
  const told: string[] = [];
  const stop = new AbortController();
  const onWait = (line: string) => {
    told.push(line);
    stop.abort();
  };
  const persistence = { waits: [1, 60_000], signal: stop.signal, onWait };
  await assert.rejects(persist("Cannot x", failing(9), persistence), { name: "AbortError" });
  assert.deepEqual(told, ["Cannot x: busy; trying again in 60 s"]);
});
