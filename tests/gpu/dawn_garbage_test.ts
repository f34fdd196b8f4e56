import assert from "node:assert/strict";
import { collectorOfV8, openCollector } from "../../src/gpu/dawn_garbage.ts";

Deno.test("garbage is collected twice a second at most", () => {
  let now = 5000;
  const collected: number[] = [];
  const collect = openCollector(() => collected.push(now), () => now);
  for (now of [5000, 5499, 5500, 5501, 5999, 6000, 7500, 7900]) collect();
  assert.deepEqual(collected, [5500, 6000, 7500]);
});

Deno.test("garbage is collected up to four times a second while the device has work for long", () => {
  let now = 5000;
  const collected: number[] = [];
  const collect = openCollector(() => collected.push(now), () => now);
  for (
    const [at, lasting] of [[5249, true], [5250, true], [5400, true], [5749, false], [
      5750,
      false,
    ]] as const
  ) {
    now = at;
    collect(lasting);
  }
  assert.deepEqual(collected, [5250, 5750]);
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
