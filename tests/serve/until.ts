import assert from "node:assert/strict";

/** Far more than anything takes that tests wait for. */
const MOST_MS = 60_000;

/** Waits until it is so. @throws AssertionError after a minute: a test that waits for ever does not say for what. */
export async function until(is: () => boolean): Promise<void> {
  const end = performance.now() + MOST_MS;
  while (!is()) {
    assert.ok(performance.now() < end, `it was not so within a minute: ${is}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
