import assert from "node:assert/strict";
import {
  type Coroutine,
  runAsync,
  runSync,
  settled,
} from "../../../src/engine/schedule/coroutine.ts";

function* sum(values: readonly (number | Promise<number>)[]): Coroutine<number> {
  let total = 0;
  for (const value of values) {
    total += yield* settled(value);
  }
  return total;
}

Deno.test("coroutine: promises are waited for, and values that are there are not", async () => {
  assert.equal(await runAsync(sum([1, Promise.resolve(2), 3])), 6);
});

Deno.test("coroutine: what a promise is rejected with is thrown where it is waited for", async () => {
  function* caught(): Coroutine<unknown> {
    try {
      yield* sum([Promise.reject(new Error("lost"))]);
    } catch (error) {
      return error;
    }
  }
  assert.match(String(await runAsync(caught())), /lost/);
  const rejected = runAsync(sum([Promise.reject(new Error("lost"))]));
  await assert.rejects(rejected, /lost/);
});

Deno.test("coroutine: at once where nothing is to be waited for, and refused elsewhere", () => {
  assert.equal(runSync(sum([1, 2])), 3);
  assert.throws(() => runSync(sum([Promise.resolve(1)])), /waits for nothing/);
});
