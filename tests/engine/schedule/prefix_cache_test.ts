import { deepEqual, equal, throws } from "node:assert/strict";
import { type PagePool, pagePool } from "../../../src/engine/device/pages.ts";
import {
  noPrefixCache,
  prefixCache,
  type PrefixCacheOptions,
  type StoredSequence,
} from "../../../src/engine/schedule/prefix_cache.ts";

const PLAIN: PrefixCacheOptions = { lookahead: 0, requireDraft: false };
const EAGLE: PrefixCacheOptions = { lookahead: 1, requireDraft: false };

function open(options: PrefixCacheOptions, total = 32) {
  const pool = pagePool(total);
  return { pool, cache: prefixCache(pool, options) };
}

/** Tokens `first`, `first` + 1, ... */
const run = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);

/** A sequence whose last token is not stored yet, in pages of its own. */
function sequence(pool: PagePool, ids: readonly number[], draftStored = 0): StoredSequence {
  const stored = ids.length - 1;
  const pages = Array.from({ length: Math.ceil(stored / 16) }, () => pool.take() as number);
  return { ids, stored, draftStored, pages };
}

Deno.test("prefix cache: a match is whole pages and leaves a token to compute", () => {
  for (const options of [PLAIN, EAGLE]) {
    const { pool, cache } = open(options);
    equal(cache.match(run(100)).pages.length, 0);
    const pages = cache.insert(sequence(pool, run(52)));
    deepEqual(pages, [0, 1, 2, 3]);
    equal(cache.size, 3, "the page of cells 48..51 is not whole");
    const cases: [tokens: number, pages: number][] = [
      ...[0, 1, 15, 16].map((tokens): [number, number] => [tokens, 0]),
      ...[17, 32].map((tokens): [number, number] => [tokens, 1]),
      ...[33, 48].map((tokens): [number, number] => [tokens, 2]),
      ...[49, 64, 1000].map((tokens): [number, number] => [tokens, 3]),
    ];
    for (const [tokens, count] of cases) {
      const found = cache.match(run(tokens));
      deepEqual(found, { pages: run(count), draftStored: 0 }, `${tokens} tokens`);
      pool.release(found.pages);
    }
  }
});

Deno.test("prefix cache: an answer's pages are not a prompt's with the same tokens", () => {
  for (const options of [PLAIN, EAGLE]) {
    const { pool, cache } = open(options);
    const pages = cache.insert({ ...sequence(pool, run(81)), promptTokens: 40 });
    equal(cache.size, 5);
    deepEqual(cache.match(run(100), 40).pages, pages, "the same answer again");
    deepEqual(cache.match(run(100)).pages, [0, 1], "a later turn's prompt");
    deepEqual(cache.match(run(100), 41).pages, [0, 1], "another prompt");
    deepEqual(cache.match(run(100), 32).pages, [0, 1]);
    deepEqual(cache.match(run(100), 31).pages, [0]);
    deepEqual(cache.match(run(100), 0).pages, []);
    const later = cache.insert(sequence(pool, run(97)));
    deepEqual([later.slice(0, 2), cache.size], [[0, 1], 9], "both are kept");
  }
});

Deno.test("prefix cache: with lookahead a page is found only before the same next token", () => {
  const other = [...run(16), 99, ...run(15, 17)];
  const plain = open(PLAIN);
  plain.cache.insert(sequence(plain.pool, run(17)));
  deepEqual(plain.cache.match(other).pages, [0]);

  const eagle = open(EAGLE);
  eagle.cache.insert(sequence(eagle.pool, run(17)));
  deepEqual(eagle.cache.match(other).pages, []);
  deepEqual(eagle.cache.match(run(17)).pages, [0]);
  const pages = eagle.cache.insert(sequence(eagle.pool, other));
  deepEqual(pages, [1, 2], "the same tokens, another draft: a page of its own");
  equal(eagle.cache.size, 2);
});

Deno.test("prefix cache: with lookahead a page waits for the token after it", () => {
  for (const [options, size] of [[PLAIN, 2], [EAGLE, 1]] as const) {
    const { pool, cache } = open(options);
    const pages = [pool.take() as number, pool.take() as number];
    cache.insert({ ids: run(32), stored: 32, draftStored: 0, pages });
    equal(cache.size, size);
    cache.insert({ ids: run(33), stored: 32, draftStored: 0, pages });
    equal(cache.size, 2);
  }
});

Deno.test("prefix cache: tokens are told apart in all their bits and places", () => {
  const { cache, pool } = open(PLAIN);
  const ids = [1, 23, 0x20003, 0xd800, 0xdc00, ...run(12)];
  cache.insert(sequence(pool, ids));
  const others = [[12, 3], [1, 23, 3], [1, 23, 0x20003, 0x10000, 0], [23, 1], [1, 23, 0x20003, 0]];
  for (const other of others) {
    deepEqual(cache.match([...other, ...ids.slice(other.length)]).pages, [], `${other}`);
  }
  deepEqual(cache.match(ids).pages, [0]);
});

Deno.test("prefix cache: a page with the same tokens takes the place of one's own", () => {
  const { pool, cache } = open(EAGLE, 8);
  const ids = [...run(33), 7, 7];
  deepEqual(cache.insert(sequence(pool, run(50))), [0, 1, 2, 3]);
  deepEqual(cache.insert(sequence(pool, ids)), [0, 1, 6]);
  deepEqual([0, 4, 5, 6].map((page) => pool.references(page)), [3, 0, 0, 1]);
  equal(pool.free, 3);
});

Deno.test("prefix cache: what is stored later is put below what was", () => {
  const { pool, cache } = open(EAGLE);
  const { ids, pages } = sequence(pool, run(100));
  for (const stored of [0, 16, 20, 64, 99]) {
    deepEqual(cache.insert({ ids, stored, draftStored: stored, pages }), pages);
    equal(cache.size, Math.floor(stored / 16));
  }
  pool.release(pages);
  deepEqual([cache.evictable, cache.size], [6, 6]);
  deepEqual(cache.match(ids), { pages: run(6), draftStored: 96 });
});

Deno.test("prefix cache: a match says where the draft's part ends", () => {
  const { pool, cache } = open(EAGLE);
  const stored = sequence(pool, run(65), 40);
  cache.insert(stored);
  deepEqual(cache.match(run(65)), { pages: [0, 1, 2, 3], draftStored: 40 });
  // The draft has caught up.
  cache.insert({ ...stored, draftStored: 64 });
  deepEqual(cache.match(run(65)), { pages: [0, 1, 2, 3], draftStored: 64 });
});

Deno.test("prefix cache: a page with more of the draft's part replaces an idle one with less", () => {
  const { pool, cache } = open(EAGLE, 8);
  pool.release(cache.insert(sequence(pool, run(49), 20)));
  const pages = cache.insert(sequence(pool, run(49), 32));
  deepEqual(pages, [0, 4, 2]);
  equal(pool.references(1), 0);
  pool.release(pages);
  equal(cache.match(run(49)).draftStored, 32);
});

Deno.test("prefix cache: beside a page in use with less of the draft's part a sequence keeps its own", () => {
  const { pool, cache } = open(EAGLE);
  const first = sequence(pool, run(65), 20);
  cache.insert(first);
  const own = sequence(pool, run(49), 48);
  deepEqual(cache.insert(own), [0, 5, 6]);
  equal(cache.match(run(49)).draftStored, 20);
  // The first has caught up.
  cache.insert({ ...first, draftStored: 64 });
  equal(cache.match(run(49)).draftStored, 48);
  deepEqual(cache.insert({ ...own, pages: [0, 5, 6] }), [0, 1, 2]);
});

Deno.test("prefix cache: where the draft is required, pages without its part are not cached", () => {
  const { pool, cache } = open({ lookahead: 1, requireDraft: true });
  const first = sequence(pool, run(65), 40);
  deepEqual(cache.insert(first), first.pages);
  equal(cache.size, 2);
  deepEqual(cache.match(run(65)), { pages: [0, 1], draftStored: 32 });
  deepEqual(cache.insert(sequence(pool, run(65), 64)), [0, 1, 6, 7]);
});

Deno.test("prefix cache: the least recently used goes first, its last page before the others", () => {
  const { pool, cache } = open(PLAIN, 6);
  for (const first of [0, 100, 200]) {
    pool.release(cache.insert(sequence(pool, run(33, first))));
  }
  pool.release(cache.match(run(33)).pages);
  const order: number[] = [];
  while (cache.evict()) order.push(pool.take() as number);
  deepEqual(order, [3, 2, 5, 4, 1, 0]);
  equal(cache.size, 0);
});

Deno.test("prefix cache: what is shared outlives the branches", () => {
  const { pool, cache } = open(PLAIN);
  const held = cache.insert(sequence(pool, run(40)));
  pool.release(cache.insert(sequence(pool, [...run(16), ...run(40, 500)])));
  deepEqual([cache.size, cache.evictable], [4, 2]);
  deepEqual([cache.evict(), cache.evict(), cache.evict()], [true, true, false]);
  equal(cache.match(run(40)).pages.length, 2);
  pool.release(held);
  equal(cache.evict(), false);
});

Deno.test("prefix cache: clear leaves what is in use", () => {
  const { pool, cache } = open(PLAIN);
  pool.release(cache.insert(sequence(pool, run(33))));
  const { pages } = cache.match(run(20));
  cache.clear();
  deepEqual([cache.size, cache.evictable, pool.free], [1, 0, pool.total - 1]);
  pool.release(pages);
  cache.clear();
  deepEqual([cache.size, pool.free], [0, pool.total]);
});

Deno.test("prefix cache: bugs of the caller are not passed over", () => {
  const { pool, cache } = open(PLAIN);
  const stored = sequence(pool, run(33));
  throws(() => cache.insert({ ...stored, pages: [0] }), /32 tokens in 1 pages/);
  deepEqual([cache.size, pool.references(0)], [0, 1]);
  cache.insert(stored);
  pool.release([0]);
  throws(() => cache.evict(), /page 0 was released before its successors/);
});

Deno.test("no prefix cache: nothing is found, and pages stay the caller's", () => {
  const pool = pagePool(4);
  const cache = noPrefixCache();
  const stored = sequence(pool, run(33), 20);
  deepEqual(cache.insert(stored), [0, 1]);
  deepEqual(cache.match(run(33)), { pages: [], draftStored: 0 });
  pool.release(stored.pages);
  cache.clear();
  deepEqual([cache.evict(), cache.evictable, cache.size, pool.free], [false, 0, 0, 4]);
});

Deno.test("prefix cache: a page that moved is found in its new place, and evicted there", () => {
  const { pool, cache } = open(PLAIN, 6);
  const owner = sequence(pool, run(33), 33);
  cache.insert(owner);
  pool.move(1, pool.take() as number);
  cache.move(1, 2);
  pool.release([0, 2]);
  const found = cache.match(run(33));
  deepEqual(found, { pages: [0, 2], draftStored: 32 });
  pool.release(found.pages);
  deepEqual([cache.evict(), [...pool.idle], cache.size], [true, [0], 1], "leaves first");
  cache.move(5, 4); // of which it knows nothing
  cache.clear();
  equal(pool.free, 6);
});

Deno.test("prefix cache: the draft's keys and values may be forgotten", () => {
  const { pool, cache } = open(PLAIN);
  const { pages } = sequence(pool, run(33), 33);
  cache.insert({ ids: run(33), stored: 32, draftStored: 32, pages });
  cache.forgetDraft();
  deepEqual(cache.match(run(33)), { pages: [0, 1], draftStored: 0 });
  cache.insert({ ids: run(33), stored: 32, draftStored: 20, pages });
  equal(cache.match(run(33)).draftStored, 20);
});

Deno.test("prefix cache: what two prompts have in common is what the one finds once the other is stored", () => {
  for (const options of [PLAIN, EAGLE]) {
    const [found, expected]: [number[], number[]] = [[], []];
    for (const alike of [0, 1, 15, 16, 17, 31, 32, 33, 40]) {
      for (const [own, others] of [[0, 0], [0, 9], [9, 0], [9, 9], [30, 1]] as const) {
        const { pool, cache } = open(options);
        const ids = [...run(alike), ...run(own, 100)];
        const other = [...run(alike), ...run(others, 200)];
        found.push(cache.common(ids, other));
        cache.insert({ ...sequence(pool, [...other, 0]), ids: other });
        expected.push(16 * cache.match(ids).pages.length);
      }
    }
    deepEqual(found, expected);
    equal(noPrefixCache().common(run(40), run(40)), 0);
  }
});

Deno.test("prefix cache: where layers have states a match ends where one is kept", () => {
  const { pool, cache } = open({ ...PLAIN, states: 2, spaced: true });
  const first = sequence(pool, run(70));
  pool.release(cache.insert(first));
  const found = (tokens: number) => {
    const { pages, state } = cache.match(run(tokens));
    pool.release(pages);
    return [pages.length, state];
  };
  equal(cache.common(run(40), run(60)), 0, "nobody waits for a part of a prompt without a state");
  equal(cache.common(run(60), run(40)), 32, "but for a whole prompt");
  equal(cache.common(run(2100), [...run(2090), 1]), 2048, "and for a part with one");
  deepEqual(found(100), [0, undefined], "pages without a state are of no use");
  const other = sequence(pool, run(70, 500));
  pool.release(cache.insert(other));
  const take = (tokens: number) => cache.takePlace(other, tokens);
  const [a, b] = [take(16) ?? -1, take(32) ?? -1];
  deepEqual([a, b].toSorted(), [0, 1]);
  equal(take(48), undefined, "both are being written");
  cache.putState(a, first, 32);
  equal(take(32), undefined, "the state of these tokens is being written");
  deepEqual(found(100), [2, a]);
  deepEqual(found(32), [0, undefined], "the last token is to be computed");
  cache.putState(b, first, 64);
  deepEqual([found(100), found(60)], [[4, b], [2, a]]);
  equal(cache.takePlace(first, 64), undefined, "these tokens have a state");
  deepEqual(found(60), [2, a]);
  // Neither no page nor tokens that are not cached take a place.
  deepEqual(
    [take(0), take(80), cache.takePlace({ ids: run(70, 900) }, 64)],
    Array(3).fill(undefined),
  );
  // The state of 64 tokens was used before that of 32.
  equal(take(48), b);
  cache.putState(b, { ids: run(70, 900) }, 64);
  deepEqual(found(100), [2, a], "the state of tokens that are not cached is dropped");
  equal(take(48), b);
  cache.putState(b, first, 0);
  equal(take(48), b, "a place that was not wanted is free again");
  cache.clear();
  deepEqual(found(100), [0, undefined]);
  pool.release(cache.insert(sequence(pool, run(70))));
  equal(cache.takePlace(first, 64), a, "pages that leave take their states with them");
});

Deno.test("prefix cache: a match says where many pages go on without a state", () => {
  const { pool, cache } = open({ ...PLAIN, states: 1 });
  pool.release(cache.insert(sequence(pool, run(150))));
  const branch = (tokens: number) => {
    const { pages, branch } = cache.match(run(tokens));
    pool.release(pages);
    return branch;
  };
  deepEqual([branch(60), branch(100), branch(200)], [undefined, 96, 144]);
  const kept = { ids: run(150) };
  cache.putState(cache.takePlace(kept, 48) ?? -1, kept, 48);
  deepEqual([branch(100), branch(200)], [undefined, 144]);
});
