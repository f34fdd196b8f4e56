import assert from "node:assert/strict";
import { collectorOfV8, openCollector } from "../../src/gpu/dawn_garbage.ts";

Deno.test("garbage is collected after so many looks, after fewer where the device has work for long", () => {
  let collections = 0;
  const { looked, collectOverdue } = openCollector(() => collections++);
  const after = (looks: number, lasting?: boolean): number => {
    for (let i = 0; i < looks; i++) looked();
    collectOverdue(lasting);
    return collections;
  };
  assert.equal(after(999, true), 0);
  assert.equal(after(1, true), 1);
  assert.equal(after(1999), 1);
  assert.equal(after(1), 2);
  assert.equal(after(0), 2);
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
