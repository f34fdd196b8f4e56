import assert from "node:assert/strict";
import { collectorOfV8, openCollector } from "../../src/gpu/dawn_garbage.ts";

Deno.test("a collection is due twice a second, and takes as long as the last one", () => {
  let now = 5000;
  const { collect, dueMs } = openCollector(() => void (now += 20), () => now);
  assert.equal(dueMs(), 0);
  now = 5499;
  assert.equal(dueMs(), 0);
  now = 5500;
  assert.ok(dueMs() > 0);
  collect(); // ends at 5520
  assert.equal(dueMs(), 0);
  now = 6019;
  assert.equal(dueMs(), 0);
  now = 6020;
  assert.equal(dueMs(), 20);
});

Deno.test("garbage that nobody collects is collected a little later, or while the device has work for long", () => {
  let now = 5000;
  const collected: number[] = [];
  const { collectOverdue, collect } = openCollector(() => collected.push(now), () => now);
  for (now of [5000, 5500, 5599, 5600, 5601, 6199, 6200]) collectOverdue();
  assert.deepEqual(collected, [5600, 6200]);
  for (now of [6449, 6450, 6699, 6700]) collectOverdue(true);
  assert.deepEqual(collected, [5600, 6200, 6450, 6700]);
  now = 7200;
  collect();
  for (now of [7201, 7799, 7800]) collectOverdue();
  assert.deepEqual(collected.slice(4), [7200, 7800]);
});

Deno.test("this Deno's V8 collects when asked to, and gives no gc to programs", () => {
  const collect = collectorOfV8();
  assert.ok(collect);
  const gone = (() => new WeakRef({}))();
  return new Promise<void>((resolve) =>
    setTimeout(() => {
      collect();
      assert.equal(gone.deref(), undefined);
      assert.ok(!("gc" in globalThis));
      resolve();
    }, 0)
  );
});
