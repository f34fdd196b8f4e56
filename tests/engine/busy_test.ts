// A device that does groups of runs one after the other, beside a host that has two of them in flight and sleeps for
// as long as it is told to before it polls.

import assert from "node:assert/strict";
import { busyDevice, type BusyRuns } from "../../src/engine/device/submit/busy.ts";

/** Milliseconds between two polls. */
const GAP = 0.25;

interface Group {
  readonly count: number;
  /** Device time of one run. */
  readonly ms: number;
  /** How long the host does something else before it polls, though it has begun to wait. */
  readonly pauseMs?: number;
}

/** Runs groups of one work. Returns the total time of the device and of the host, and the polls of each group. */
function drive(groups: readonly Group[], { inFlight = 2, submitMs = 0.1 } = {}) {
  let [now, free, busy] = [1000, 0, 0];
  const submitted = busyDevice<object>(() => now);
  const work = {};
  const unread: { readonly runs: BusyRuns; readonly end: number; readonly group: Group }[] = [];
  const polls: number[] = [];
  function read(): void {
    const { runs, end, group: { pauseMs = 0 } } = unread.shift() as typeof unread[number];
    const { busyMs = 0, stillBusy } = runs.wait();
    now = Math.max(now + pauseMs, now + busyMs);
    for (let count = 1;; count++) {
      if (now >= end) {
        polls.push(count);
        break;
      }
      if (count === 1) stillBusy?.();
      now += GAP;
    }
    runs.seen();
  }
  for (const group of groups) {
    if (unread.length === inFlight) read();
    now += submitMs;
    free = Math.max(free, now) + group.count * group.ms;
    busy += group.count * group.ms;
    unread.push({ runs: submitted(work, group.count), end: free, group });
  }
  while (unread.length > 0) read();
  return { deviceMs: busy, hostMs: now - 1000, polls };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

for (const count of [1, 8]) {
  Deno.test(`busy: groups of ${count} are polled a few times each once they are known`, () => {
    const { deviceMs, hostMs, polls } = drive(Array(200).fill({ count, ms: 5 }));
    assert.ok(hostMs < 1.005 * deviceMs, `${hostMs} of ${deviceMs}`);
    assert.ok(Math.min(polls[0] as number, polls[1] as number) > count * 5 / GAP);
    assert.ok(sum(polls.slice(10)) / 190 <= 1 + count * 0.1 / GAP + 2, polls.join());
  });
}

Deno.test("busy: a host that comes late to an end does not stay behind the device", () => {
  for (const pauseMs of [3, 9, 17, 60]) {
    const groups = Array.from(
      { length: 300 },
      (_, i) => ({ count: 1, ms: 5, ...i % 100 === 50 && { pauseMs } }),
    );
    const { deviceMs, hostMs, polls } = drive(groups);
    assert.ok(hostMs < 1.01 * deviceMs + 3 * pauseMs, `${hostMs} of ${deviceMs}`);
    assert.ok(sum(polls.slice(10)) / 290 < 4, polls.join());
  }
});

Deno.test("busy: runs that become faster or slower are followed", () => {
  for (const factor of [0.5, 0.9, 1.1, 2]) {
    const groups = Array.from({ length: 400 }, (_, i) => {
      return { count: 1, ms: i % 200 < 100 ? 5 : 5 * factor };
    });
    const { deviceMs, hostMs, polls } = drive(groups);
    assert.ok(hostMs < 1.03 * deviceMs, `${factor}: ${hostMs} of ${deviceMs}`);
    assert.ok(sum(polls) / 400 < 8, `${factor}: ${sum(polls)}`);
  }
});

Deno.test("busy: runs that were slow once, or first, do not keep the host asleep", () => {
  for (const slow of [0, 1, 50]) {
    for (const inFlight of [1, 2]) {
      const groups = Array.from(
        { length: 200 },
        (_, i) => ({ count: 1, ms: i === slow ? 100 : 5 }),
      );
      const { deviceMs, hostMs, polls } = drive(groups, { inFlight });
      assert.ok(hostMs < 1.05 * deviceMs, `${slow}: ${hostMs} of ${deviceMs}`);
      assert.ok(sum(polls.slice(slow + 10)) / (190 - slow) < 4, polls.join());
    }
  }
  // The first two runs are slow, as while clocks rise: the host waits too long for the next four or five.
  const groups = Array.from({ length: 200 }, (_, i) => ({ count: 1, ms: i < 2 ? 50 : 5 }));
  const { deviceMs, hostMs } = drive(groups, { inFlight: 1 });
  assert.ok(hostMs < 1.05 * deviceMs + 4 * 50, `${hostMs} of ${deviceMs}`);
});

Deno.test("busy: one group at a time, and a host that is slower than the device", () => {
  const alone = drive(Array(100).fill({ count: 4, ms: 5 }), { inFlight: 1 });
  assert.ok(alone.hostMs < 1.03 * alone.deviceMs, `${alone.hostMs} of ${alone.deviceMs}`);
  assert.ok(sum(alone.polls.slice(10)) / 90 < 6, alone.polls.join());
  // It sleeps for nothing.
  const slow = drive(Array(100).fill({ count: 1, ms: 1 }), { submitMs: 3 });
  assert.ok(slow.hostMs < 100 * 3 + 5, String(slow.hostMs));
});
