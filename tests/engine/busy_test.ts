import assert from "node:assert/strict";
import { busyDevice } from "../../src/engine/device/submit/busy.ts";

function rounded(ms: number): number {
  return Math.round(ms * 1e6) / 1e6;
}

/** A device whose runs take `ms` each, beside a host that reads each group `lateMs` after it submitted it. */
function groups() {
  let now = 1000;
  let free = 0;
  const submitted = busyDevice<object>(() => now);
  return {
    submit(work: object, count: number, ms: number) {
      const busy = submitted(work, count);
      const end = free = Math.max(now, free) + count * ms;
      return {
        /** Milliseconds from now until they end, and those that the host sleeps for sure. */
        read(lateMs = 0): readonly [number, number] {
          now += lateMs;
          const [left, sleeps] = [Math.max(0, end - now), busy.leftMs()];
          now = Math.max(now + sleeps, end);
          busy.seen();
          return [rounded(left), rounded(sleeps)];
        },
      };
    },
  };
}

Deno.test("busy: nothing is known of a work that has not run; then 98 % of what its runs took", () => {
  const { submit } = groups();
  const [work, other] = [{}, {}];
  assert.deepEqual(submit(work, 8, 5).read(), [40, 0]);
  assert.deepEqual(submit(work, 8, 5).read(1), [39, 0.98 * 40 - 1]);
  assert.deepEqual(submit(work, 2, 5).read(), [10, 9.8]);
  assert.deepEqual(submit(other, 2, 5).read(), [10, 0]);
});

Deno.test("busy: runs begin when those before them have ended", () => {
  const { submit } = groups();
  const work = {};
  submit(work, 1, 10).read();
  const first = submit(work, 1, 10);
  const second = submit(work, 1, 10);
  assert.deepEqual(first.read(), [10, 9.8]);
  assert.deepEqual(second.read(), [10, 9.8]);
});

Deno.test("busy: runs that become faster are waited for too long once, slower ones cost looks", () => {
  const { submit } = groups();
  const work = {};
  submit(work, 1, 10).read();
  const slept: number[] = [];
  for (let i = 0; i < 12; i++) slept.push(submit(work, 1, 9).read()[1]);
  assert.equal(slept[0], 9.8);
  assert.ok(slept.slice(6).every((ms) => ms < 9 && ms > 8.6), slept.join());
  for (let i = 0; i < 4; i++) {
    const [left, sleeps] = submit(work, 1, 11).read();
    assert.ok(sleeps < left);
  }
  const [, sleeps] = submit(work, 1, 11).read();
  assert.ok(sleeps > 10.7);
});

Deno.test("busy: a host that comes late learns nothing from when it sees an end", () => {
  const { submit } = groups();
  const work = {};
  submit(work, 4, 5).read();
  for (let i = 0; i < 5; i++) assert.deepEqual(submit(work, 4, 5).read(90), [0, 0]);
  assert.deepEqual(submit(work, 4, 5).read(), [20, 19.6]);
});
