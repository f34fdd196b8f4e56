import { deepEqual, equal, throws } from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { type PagePool, pagePool } from "../../src/engine/device/pages.ts";

const take = (pool: PagePool, count: number) => Array.from({ length: count }, () => pool.take());

Deno.test("pages: the lowest come first, and a sequence's come again in their order", () => {
  const pool = pagePool(4);
  deepEqual([pool.total, pool.free], [4, 4]);
  deepEqual(take(pool, 5), [0, 1, 2, 3, undefined]);
  equal(pool.free, 0);
  pool.release([2, 0, 3]);
  equal(pool.free, 3);
  deepEqual(take(pool, 4), [2, 0, 3, undefined]);
});

Deno.test("pages: one is free when its last holder releases it", () => {
  const pool = pagePool(2);
  pool.take();
  pool.retain([0]);
  equal(pool.references(0), 2);
  pool.release([0]);
  deepEqual([pool.references(0), pool.free], [1, 1]);
  pool.release([0]);
  deepEqual([pool.references(0), pool.free], [0, 2]);
});

Deno.test("pages: one that only the cache holds is idle, not free, and may be held again", () => {
  const pool = pagePool(3);
  take(pool, 3);
  for (const page of [0, 1, 2]) pool.keep(page);
  equal(pool.references(1), 2);
  pool.release([0, 1]);
  deepEqual([...pool.idle], [1, 0], "the last page of a sequence first");
  pool.release([2]);
  pool.retain([1]);
  deepEqual([...pool.idle], [0, 2]);
  pool.release([1]);
  deepEqual([...pool.idle], [0, 2, 1], "in the order of their release");
  equal(pool.free, 0);
  pool.drop(2);
  deepEqual([[...pool.idle], pool.free, pool.references(2)], [[0, 1], 1, 0]);
});

Deno.test("pages: one that the cache drops stays with its holders", () => {
  const pool = pagePool(1);
  pool.take();
  pool.keep(0);
  pool.drop(0);
  deepEqual([pool.references(0), pool.free], [1, 0]);
  pool.release([0]);
  equal(pool.free, 1);
});

Deno.test("pages: nothing is retained, released, kept or dropped that is not held", () => {
  const pool = pagePool(2);
  for (const page of [0, 1, 2, -1]) {
    throws(() => pool.retain([page]), /has no holder/);
    throws(() => pool.release([page]), /no sequence holds page/);
    throws(() => pool.keep(page), /no sequence holds page/);
    throws(() => pool.drop(page), /is not cached/);
  }
  pool.take();
  throws(() => pool.release([0, 0]), /no sequence holds page 0/);
  pool.take();
  pool.keep(0);
  throws(() => pool.keep(0), /page 0 is cached already/);
  pool.release([0]);
  throws(
    () => pool.release([0]),
    /no sequence holds page 0/,
    "the cache's hold is not a sequence's",
  );
  throws(() => pool.keep(0), /no sequence holds page 0/);
  pool.drop(0);
  throws(() => pool.drop(0), /page 0 is not cached/);
  equal(pool.free, 2);
});

const PAGES = 5;
const page = fc.nat(PAGES - 1);
const step = fc.oneof(
  fc.constant(["take"] as const),
  fc.tuple(fc.constantFrom("retain", "release", "keep", "drop"), page),
);

Deno.test("pages: after any calls counts are right, and each page is free, held or idle", () => {
  const property = fc.property(fc.array(step, { maxLength: 120, size: "max" }), (steps) => {
    const pool = pagePool(PAGES);
    const holds = Array<number>(PAGES).fill(0);
    const kept = Array<number>(PAGES).fill(0);
    for (const [kind, page = 0] of steps) {
      if (kind === "take") {
        const free = holds.findIndex((count, i) => count + kept[i]! === 0) >= 0;
        const taken = pool.take();
        equal(taken !== undefined, free);
        if (taken === undefined) continue;
        equal(holds[taken]! + kept[taken]!, 0);
        holds[taken] = 1;
        continue;
      }
      const held = holds[page]! > 0;
      const may = {
        retain: held || kept[page]! > 0,
        release: held,
        keep: held && kept[page] === 0,
        drop: kept[page]! > 0,
      }[kind];
      const call = () => kind === "keep" || kind === "drop" ? pool[kind](page) : pool[kind]([page]);
      if (!may) {
        throws(call);
        continue;
      }
      call();
      const counts = kind === "keep" || kind === "drop" ? kept : holds;
      counts[page] = counts[page]! + (kind === "retain" || kind === "keep" ? 1 : -1);
    }
    const all = holds.map((count, i) => count + kept[i]!);
    deepEqual(all.map((_, i) => pool.references(i)), all);
    equal(pool.free, all.filter((count) => count === 0).length);
    const idle = all.flatMap((_, i) => holds[i] === 0 && kept[i] === 1 ? [i] : []);
    deepEqual([...pool.idle].toSorted(), idle);
  });
  fc.assert(property, { seed: 20_260_713, numRuns: 200 });
});

Deno.test("pages: a pool grows, its new pages are given last, and shrinks to what is low", () => {
  const pool = pagePool(2);
  take(pool, 1);
  pool.resize(4);
  deepEqual([pool.total, pool.free, pool.beyond], [4, 3, undefined]);
  deepEqual(take(pool, 4), [1, 2, 3, undefined]);
  pool.release([3]);
  pool.keep(2);
  pool.release([2]);
  pool.resize(2);
  deepEqual([pool.total, pool.free, pool.beyond], [2, 0, 2]);
  pool.drop(2);
  deepEqual([pool.free, pool.beyond], [0, undefined], "what lies beyond is not handed out");
  pool.resize(4);
  deepEqual(take(pool, 3), [2, 3, undefined]);
});

Deno.test("pages: a pool that grows again while pages beyond are held gives each once", () => {
  const pool = pagePool(1);
  pool.resize(4);
  take(pool, 3);
  pool.resize(1);
  pool.release([2]);
  pool.resize(4);
  deepEqual(take(pool, 3), [2, 3, undefined]);
  deepEqual([pool.references(1), pool.references(2)], [1, 1]);
});

Deno.test("pages: a page that moves keeps its holds and its place among the idle ones", () => {
  const pool = pagePool(4);
  take(pool, 4);
  for (const page of [1, 2, 3]) pool.keep(page);
  pool.retain([3]);
  pool.release([2, 1]);
  pool.release([0]);
  deepEqual([...pool.idle], [1, 2]);
  pool.resize(3);
  equal(pool.beyond, 3);
  const to = pool.take() as number;
  pool.move(3, to);
  deepEqual([to, pool.references(0), pool.references(3), pool.beyond], [0, 3, 0, undefined]);
  pool.release([0]);
  pool.release([0]);
  deepEqual([[...pool.idle], pool.free], [[1, 2, 0], 0]);
  pool.resize(1);
  pool.drop(0);
  pool.move(2, pool.take() as number);
  deepEqual([[...pool.idle], pool.beyond], [[1, 0], 1]);
});
