import assert from "node:assert/strict";

/** Far longer than anything that tests wait for. */
const MAX_MS = 60_000;

/** Waits for a condition. @throws AssertionError after a minute: a test that waited for ever would not say for what. */
export async function until(is: () => boolean): Promise<void> {
  const end = performance.now() + MAX_MS;
  while (!is()) {
    assert.ok(performance.now() < end, `it was not so within a minute: ${is}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
