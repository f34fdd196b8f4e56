import assert from "node:assert/strict";
import { collectorOfV8, handlesOfV8, openCollector } from "../../src/gpu/dawn_garbage.ts";

/** A V8 whose collections leave `live` handles. */
function fakeV8(live: number) {
  const v8 = { handles: live, collections: 0 };
  const collect = () => {
    v8.collections++;
    v8.handles = live;
  };
  return { v8, collectOverdue: openCollector(collect, () => v8.handles).collectOverdue };
}

Deno.test("garbage is collected after so many functions, after fewer where the device has work for long", () => {
  const { v8, collectOverdue } = fakeV8(300);
  const after = (functions: number, lasting?: boolean): number => {
    v8.handles += functions;
    collectOverdue(lasting);
    return v8.collections;
  };
  assert.equal(after(0), 0);
  assert.equal(after(1999, true), 0);
  assert.equal(after(1, true), 1);
  assert.equal(after(2999), 1);
  assert.equal(after(1), 2);
  assert.equal(after(0), 2);
});

Deno.test("garbage that V8 has collected by itself is not collected again", () => {
  const { v8, collectOverdue } = fakeV8(300);
  for (let i = 0; i < 10; i++) {
    for (v8.handles = 300; v8.handles < 3200; v8.handles += 100) collectOverdue();
  }
  assert.equal(v8.collections, 0);
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

Deno.test("this Deno's V8 tells how many handles it has", () => {
  const handles = handlesOfV8();
  assert.ok(Number.isInteger(handles) && handles > 10 && handles < 1e5, String(handles));
});
