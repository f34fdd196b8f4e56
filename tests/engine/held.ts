import assert from "node:assert/strict";
import type { LocalEngine } from "../../src/engine/open.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";

/** Every page is free or only cached. */
export function assertNothingHeld({ runner: { pool }, cache }: LocalEngine): void {
  assert.equal(pool.free + cache.evictable, pool.total);
  assert.equal(cache.size, cache.evictable);
}

/** The results of requests that are submitted at once; afterwards every page is free or only cached. */
export async function resultsOf(
  engine: LocalEngine,
  requests: readonly GenerateRequest[],
): Promise<GenerateResult[]> {
  const results = await Promise.all(requests.map((each) => resultOf(engine.submit(each))));
  assertNothingHeld(engine);
  return results;
}
