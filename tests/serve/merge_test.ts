import assert from "node:assert/strict";
import { merged } from "../../src/serve/answers/merge.ts";

async function* failing(): AsyncGenerator<string, void, void> {
  yield "first";
  throw new Error("the client has left");
}

Deno.test("a source that fails while nobody iterates is an error of the next iteration alone", async () => {
  const all = merged([failing()]);
  assert.deepEqual((await all.next()).value, [0, "first"]);
  // The source has failed by then; a rejection that nobody handles would end the process.
  await new Promise((resolve) => setTimeout(resolve, 0));
  await assert.rejects(all.next(), /the client has left/);
  assert.deepEqual(await all.next(), { value: undefined, done: true });
});
