import assert from "node:assert/strict";
import type { LocalEngine } from "../../src/engine/open.ts";

/** Every page is free or only cached. */
export function assertNothingHeld({ runner: { pool }, cache }: LocalEngine): void {
  assert.equal(pool.free + cache.evictable, pool.total);
  assert.equal(cache.size, cache.evictable);
}
