import assert from "node:assert/strict";
import { atOnce, settled, type Walk, whenSettled } from "../../../src/engine/schedule/walk.ts";

function* sum(values: readonly (number | Promise<number>)[]): Walk<number> {
  let total = 0;
  for (const value of values) {
    total += yield* settled(value);
  }
  return total;
}

Deno.test("walk: promises are waited for, and values that are there are not", async () => {
  assert.equal(await whenSettled(sum([1, Promise.resolve(2), 3])), 6);
});

Deno.test("walk: what a promise is rejected with is thrown where it is waited for", async () => {
  function* caught(): Walk<unknown> {
    try {
      yield* sum([Promise.reject(new Error("lost"))]);
    } catch (error) {
      return error;
    }
  }
  assert.match(String(await whenSettled(caught())), /lost/);
  const rejected = whenSettled(sum([Promise.reject(new Error("lost"))]));
  await assert.rejects(rejected, /lost/);
});

Deno.test("walk: at once where nothing is to be waited for, and refused elsewhere", () => {
  assert.equal(atOnce(sum([1, 2])), 3);
  assert.throws(() => atOnce(sum([Promise.resolve(1)])), /waits for nothing/);
});
