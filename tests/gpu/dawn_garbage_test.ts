import assert from "node:assert/strict";
import { collectorOfV8, openCollector } from "../../src/gpu/dawn_garbage.ts";

Deno.test("garbage is collected after so many polls, after fewer where the device has work for long", () => {
  let [collections, all] = [0, 0];
  const { collectOverdue } = openCollector(() => collections++, () => all);
  const after = (polls: number, lasting?: boolean): number => {
    all += polls;
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
