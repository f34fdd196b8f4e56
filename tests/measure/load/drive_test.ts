import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { RemoteError } from "../../../src/errors.ts";
import { drive, type DriveOptions } from "../../../src/measure/load/drive.ts";
import type { LoadRequest, RequestSender } from "../../../src/measure/load/request.ts";
import { type FakeClock, fakeClock, fakeSender } from "./fake.ts";

const NEVER = new AbortController().signal;

function requests(times: readonly number[], maxTokens = 3): LoadRequest[] {
  const prompt = { kind: "text", group: "", text: "" } as const;
  return times.map((atMs, seed) => ({
    atMs,
    prompt,
    promptTokens: 0,
    maxTokens,
    ignoreEos: true,
    seed,
  }));
}

async function driven(
  times: readonly number[],
  { clock, sender, ...options }:
    & { clock: FakeClock; sender: RequestSender }
    & Partial<DriveOptions>,
) {
  const dues = requests(times)
    .map((each) => ({ atMs: each.atMs, prepared: sender.prepare(each) }));
  return await clock.run(drive(dues, { clock, signal: NEVER, ...options }));
}

Deno.test("an open loop sends at its times and records what it received when", async () => {
  const clock = fakeClock();
  const sender = fakeSender(clock);
  const ended: number[] = [];
  const { requests: records } = await driven([0, 4, 100], {
    clock,
    sender,
    onEnded: (count: number) => ended.push(count),
  });
  deepEqual(records.map(({ dueMs, runsMs, endMs }) => [dueMs, runsMs, endMs]), [
    [0, 0, 15],
    [4, 4, 19],
    [100, 100, 115],
  ]);
  deepEqual(records[1]?.received, [{ atMs: 14, tokens: 1 }, { atMs: 19, tokens: 2 }]);
  deepEqual(records.map(({ outputTokens, outputHash }) => [outputTokens, outputHash]), [
    [3, "0"],
    [3, "1"],
    [3, "2"],
  ]);
  deepEqual(ended, [1, 2, 3]);
});

Deno.test("an open loop does not wait for answers: the queue is at whoever answers", async () => {
  const clock = fakeClock();
  const sender = fakeSender(clock, { places: 1 });
  const { requests: records } = await driven([0, 1, 2], { clock, sender });
  deepEqual(records.map(({ dueMs, runsMs, endMs }) => [dueMs, runsMs, endMs]), [
    [0, 0, 15],
    [1, 15, 30],
    [2, 30, 45],
  ]);
  deepEqual(sender.log.slice(0, 3), ["sent 0", "sent 1", "sent 2"]);
});

Deno.test("a closed loop keeps a number in flight, and times begin with the place", async () => {
  const clock = fakeClock();
  const sender = fakeSender(clock);
  const { requests: records } = await driven([0, 0, 0, 0, 0], { clock, sender, concurrency: 2 });
  deepEqual(records.map(({ dueMs, endMs }) => [dueMs, endMs]), [
    [0, 15],
    [0, 15],
    [15, 30],
    [15, 30],
    [30, 45],
  ]);
});

Deno.test("what is due while the thread is kept is sent when anything is heard, and counts from its time", async () => {
  // Answers come without a turn of the event loop, although time passes in between.
  let now = 0;
  const sent: [number, number][] = [];
  const sender: RequestSender = {
    prepare: ({ seed, maxTokens }) => ({
      async send(heard) {
        sent.push([seed, now]);
        heard(0);
        for (let token = 0; token < maxTokens; token++) {
          await undefined;
          now += 10;
          heard(1);
        }
        return { promptTokens: 1, outputTokens: maxTokens, outputHash: "", complete: true };
      },
    }),
  };
  const dues = requests([0, 15, 25], 6)
    .map((each) => ({ atMs: each.atMs, prepared: sender.prepare(each) }));
  const { requests: records } = await drive(dues, {
    signal: NEVER,
    clock: { now: () => now, sleep: (ms) => new Promise((wake) => setTimeout(wake, ms)) },
  });
  deepEqual(sent.map(([seed]) => seed), [0, 1, 2]);
  ok(sent.every(([seed, at]) => at - (dues[seed]?.atMs ?? 0) <= 10), String(sent));
  deepEqual(records.map(({ dueMs }) => dueMs), [0, 15, 25]);
});

Deno.test("a sender that calls back while it takes a request gets each request once", async () => {
  const taken: number[] = [];
  let depth = 0;
  const sender: RequestSender = {
    prepare: ({ seed }) => ({
      send(heard) {
        equal(++depth, 1, "one at a time");
        taken.push(seed);
        heard(0);
        depth--;
        return Promise.resolve({
          promptTokens: 1,
          outputTokens: 1,
          outputHash: "",
          complete: true,
        });
      },
    }),
  };
  const clock = fakeClock();
  const { requests: records } = await driven([0, 0, 0, 7], { clock, sender });
  deepEqual(taken, [0, 1, 2, 3]);
  equal(records.length, 4);
});

Deno.test("time that passes while it is looked at loses no request", async () => {
  let now = 0;
  const taken: number[] = [];
  const sender: RequestSender = {
    prepare: ({ seed }) => ({
      send(heard) {
        taken.push(seed);
        heard(1);
        return Promise.resolve({
          promptTokens: 1,
          outputTokens: 1,
          outputHash: "",
          complete: true,
        });
      },
    }),
  };
  const dues = requests([0.05, 0.1, 0.35, 2], 1)
    .map((each) => ({ atMs: each.atMs, prepared: sender.prepare(each) }));
  const clock = { now: () => now += 0.03, sleep: () => Promise.resolve() };
  const { requests: records } = await drive(dues, { clock, signal: NEVER });
  deepEqual(taken, [0, 1, 2, 3]);
  deepEqual(records.map(({ dueMs }) => dueMs), [0.05, 0.1, 0.35, 2]);
});

Deno.test("the signal ends what is in flight and sends nothing more", async () => {
  const clock = fakeClock();
  const sender = fakeSender(clock, { first: 50 });
  const stop = new AbortController();
  clock.sleep(20, NEVER).then(() => stop.abort());
  const { requests: records } = await driven([0, 10, 500], { clock, sender, signal: stop.signal });
  deepEqual(records.map(({ complete }) => complete), [false, false]);
  deepEqual(sender.log.filter((line) => line.startsWith("sent")), ["sent 0", "sent 1"]);
  const none = await driven([0, 0], { clock, sender, signal: AbortSignal.abort(), concurrency: 1 });
  deepEqual(none, { requests: [], failed: [] });
});

Deno.test("a request that fails ends the others and is thrown once they have ended", async () => {
  const clock = fakeClock();
  const good = fakeSender(clock, { first: 100 });
  let count = 0;
  const sender: RequestSender = {
    prepare: (request) =>
      count++ === 1
        ? { send: () => clock.sleep(5, NEVER).then(() => Promise.reject(new Error("lost"))) }
        : good.prepare(request),
  };
  await rejects(driven([0, 1, 400], { clock, sender }), /^Error: lost$/);
  deepEqual(good.log, ["sent 0", "ended 0"]);
});

Deno.test("a request that a server refuses is a failed one, and the others go on", async () => {
  const clock = fakeClock();
  const good = fakeSender(clock);
  const busy = new RemoteError("busy");
  const sender: RequestSender = {
    prepare: (request) =>
      request.seed === 1
        ? { send: () => clock.sleep(5, NEVER).then(() => Promise.reject(busy)) }
        : good.prepare(request),
  };
  const ended: number[] = [];
  const onEnded = (count: number) => void ended.push(count);
  const { requests, failed } = await driven([0, 1, 2], { clock, sender, concurrency: 2, onEnded });
  deepEqual(requests.map(({ dueMs, endMs }) => [dueMs, endMs]), [[0, 15], [6, 21]]);
  deepEqual(failed, [{ error: busy, dueMs: 1, endMs: 6 }]);
  deepEqual(ended, [1, 2, 3]);
});
