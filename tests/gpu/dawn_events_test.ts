import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { catchPolls, mappedByPolling } from "../../src/gpu/dawn_events.ts";

/** A native function, as an addon's are. */
function native(callback: () => void): () => void {
  return callback.bind(undefined);
}

const polls = catchPolls();

Deno.test("a poll calls all that addons handed over, once, and what they hand over then next time", async () => {
  const calls: string[] = [];
  const again = native(() => {
    calls.push("again");
    if (calls.length < 4) setImmediate(again);
  });
  setImmediate(again);
  setImmediate(native(() => calls.push("once")));
  assert.equal(polls.poll(), true);
  assert.deepEqual(calls, ["again", "once"]);
  assert.equal(polls.poll(), true);
  assert.deepEqual(calls, ["again", "once", "again"]);
  await setTimeout(5); // without a poll the event loop calls it
  assert.deepEqual(calls, ["again", "once", "again", "again"]);
  assert.equal(polls.poll(), false);
});

Deno.test("what else is handed to setImmediate waits for its turn, with its arguments", async () => {
  const calls: number[] = [];
  setImmediate((...args: number[]) => calls.push(...args), 1, 2);
  assert.equal(polls.poll(), false);
  assert.deepEqual(calls, []);
  await setTimeout(5);
  assert.deepEqual(calls, [1, 2]);
});

Deno.test("a thread catches them once", () => assert.equal(catchPolls(), polls));

/** A buffer that is mapped after so many polls, or fails. */
function fakeBuffer(after: number, failure?: Error): GPUBuffer {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const buffer = {
    mapState: "unmapped",
    mapAsync() {
      let count = 0;
      const tick = native(() => {
        if (++count < after) return void setImmediate(tick);
        buffer.mapState = failure ? "unmapped" : "mapped";
        if (failure) reject(failure);
        else resolve();
      });
      buffer.mapState = "pending";
      setImmediate(tick);
      return promise;
    },
    getMappedRange: () => new ArrayBuffer(after),
  };
  return buffer as unknown as GPUBuffer;
}

Deno.test("a buffer is polled for until it is mapped", async () => {
  let calls = 0;
  assert.equal(
    (await mappedByPolling(polls, fakeBuffer(1), { meanwhile: () => calls++ })).byteLength,
    1,
  );
  assert.equal(calls, 1);
  assert.equal((await mappedByPolling(polls, fakeBuffer(40))).byteLength, 40);
});

Deno.test("the thread sleeps first for as long as the device is known to be busy", async () => {
  const { wait } = Atomics;
  const slept: number[] = [];
  Atomics.wait = (_array: unknown, _index: number, _value: unknown, ms = Infinity) => {
    slept.push(ms);
    return "timed-out";
  };
  try {
    await mappedByPolling(polls, fakeBuffer(3), { busyMs: 1e6 });
  } finally {
    Atomics.wait = wait;
  }
  assert.ok(slept[0] !== undefined && slept[0] > 9e5);
  assert.ok(slept.length === 3 && slept.slice(1).every((ms) => ms < 1));
});

Deno.test("it is told whether the first poll found the buffer busy", async () => {
  let busy = 0;
  const stillBusy = () => busy++;
  await mappedByPolling(polls, fakeBuffer(1), { stillBusy });
  assert.equal(busy, 0);
  await mappedByPolling(polls, fakeBuffer(5), { stillBusy });
  assert.equal(busy, 1);
});

Deno.test("a map that fails throws what it failed with", async () => {
  const lost = new Error("lost");
  await assert.rejects(mappedByPolling(polls, fakeBuffer(3, lost)), lost);
});
