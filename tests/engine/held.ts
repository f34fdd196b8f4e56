import assert from "node:assert/strict";
import type { Engine } from "../../src/engine/open.ts";

/** Every page is free or only cached. */
export function assertNothingHeld({ core: { pool }, cache }: Engine): void {
  assert.equal(pool.free + cache.evictable, pool.total);
  assert.equal(cache.size, cache.evictable);
}
