import { type PagePool, pagePool } from "../../engine/device/pages.ts";
import {
  noPrefixCache,
  type PrefixCache,
  prefixCache,
} from "../../engine/schedule/prefix_cache.ts";
import { CELLS_PER_PAGE } from "../../engine/schedule/sequence_pages.ts";

/** Pages where memory is no limit; policies get this number. */
const UNLIMITED = 2 ** 31 - 1;

/** KV pages of the simulated machine, and what is cached in them. */
export interface SimulatedMemory {
  readonly pool: PagePool;
  readonly cache: PrefixCache;
}

/**
 * The engine's pool and prefix cache; without a limit nothing is cached, because nobody is ever preempted
 * and no two requests begin alike.
 *
 * @param kvTokens Infinity: no limit.
 * @param cachedTokens leading tokens of a request's ids that others have stored.
 */
export function simulatedMemory(
  kvTokens: number,
  cachedTokens: (ids: readonly number[]) => number,
): SimulatedMemory {
  const limited = kvTokens < Infinity;
  const pool = limited ? pagePool(Math.floor(kvTokens / CELLS_PER_PAGE)) : unlimitedPages();
  const cache = limited
    ? prefixCache(pool, { lookahead: 1, requireDraft: false })
    : noPrefixCache();
  return { pool, cache: withStoredPrompts(cache, pool, cachedTokens) };
}

/**
 * A cache that also finds what is not in it: whole pages of prompts that others are said to have stored.
 * They are the request's own from then on.
 */
function withStoredPrompts(
  cache: PrefixCache,
  pool: PagePool,
  cachedTokens: (ids: readonly number[]) => number,
): PrefixCache {
  return {
    get evictable() {
      return cache.evictable;
    },
    get size() {
      return cache.size;
    },
    match(ids) {
      const found = cache.match(ids);
      const missing = Math.floor(cachedTokens(ids) / CELLS_PER_PAGE) - found.pages.length;
      if (missing <= 0 || missing > pool.free + cache.evictable) return found;
      while (missing > pool.free && cache.evict());
      const others = Array.from({ length: missing }, () => pool.take() as number);
      const pages = [...found.pages, ...others];
      return { pages, draftStored: pages.length * CELLS_PER_PAGE };
    },
    common: (ids, others) => cache.common(ids, others),
    insert: (sequence) => cache.insert(sequence),
    takePlace: () => cache.takePlace(),
    putState: (place, ids, length) => cache.putState(place, ids, length),
    evict: () => cache.evict(),
    clear: () => cache.clear(),
    move: (from, to) => cache.move(from, to),
    forgetDraft: () => cache.forgetDraft(),
  };
}

/** Pages that never end, all of the same number: nobody reads what is in them. */
function unlimitedPages(): PagePool {
  return {
    total: UNLIMITED,
    free: UNLIMITED,
    take: () => 0,
    retain: () => {},
    release: () => {},
    references: () => 1,
    keep: () => {},
    drop: () => {},
    idle: new Set(),
    resize: () => {},
    beyond: undefined,
    move: () => {},
  };
}
