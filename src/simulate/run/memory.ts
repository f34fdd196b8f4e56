import { type PagePool, pagePool } from "../../engine/device/pages.ts";
import {
  noPrefixCache,
  type PrefixCache,
  prefixCache,
} from "../../engine/schedule/prefix_cache.ts";
import { CELLS_PER_PAGE } from "../../engine/schedule/sequence_pages.ts";

/** The number of pages that policies see if memory is unlimited. */
const UNLIMITED = 2 ** 31 - 1;

/** KV pages of the simulated machine, and what is cached in them. */
export interface SimulatedMemory {
  readonly pool: PagePool;
  readonly cache: PrefixCache;
}

/**
 * The engine's page pool and prefix cache. Without a limit nothing is cached, because no request is ever
 * preempted and no two prompts begin alike.
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
 * A prefix cache that also reports hits for the leading whole pages of a prompt that earlier requests are said
 * to have stored. These pages belong to the request from then on.
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
    takePlace: (sequence, length) => cache.takePlace(sequence, length),
    putState: (place, sequence, length) => cache.putState(place, sequence, length),
    evict: () => cache.evict(),
    clear: () => cache.clear(),
    move: (from, to) => cache.move(from, to),
    forgetDraft: () => cache.forgetDraft(),
  };
}

/** An unlimited pool whose pages all have the same number: their contents are never read. */
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
