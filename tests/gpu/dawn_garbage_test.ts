import assert from "node:assert/strict";
import { collectorOfV8, openCollector } from "../../src/gpu/dawn_garbage.ts";

Deno.test("garbage is collected twice a second at most, once somebody was told or a little later", () => {
  let now = 5000;
  const collected: number[] = [];
  const { collect, dueMs } = openCollector(() => collected.push(now), () => now);
  for (now of [5000, 5499, 5500, 5501, 5599, 5600, 5999, 6199, 6200]) collect();
  assert.deepEqual(collected, [5600, 6200]);
  for (now of [6300, 6699, 6700, 6701, 7199, 7200]) {
    dueMs();
    collect();
  }
  assert.deepEqual(collected, [5600, 6200, 6700, 7200]);
});

Deno.test("garbage is collected up to four times a second while the device has work for long", () => {
  let now = 5000;
  const collected: number[] = [];
  const { collect } = openCollector(() => collected.push(now), () => now);
  for (
    const [at, lasting] of [[5249, true], [5250, true], [5400, true], [5849, false], [
      5850,
      false,
    ]] as const
  ) {
    now = at;
    collect(lasting);
  }
  assert.deepEqual(collected, [5250, 5850]);
});

Deno.test("a collection that is due is expected to take as long as the last one", () => {
  let now = 5000;
  const { collect, dueMs } = openCollector(() => void (now += 20), () => now);
  assert.equal(dueMs(), 0);
  now = 5500;
  const usual = dueMs();
  assert.ok(usual > 0);
  collect(); // ends at 5520
  assert.equal(dueMs(), 0);
  now = 6019;
  assert.equal(dueMs(), 0);
  now = 6020;
  assert.equal(dueMs(), 20);
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
