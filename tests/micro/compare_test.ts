import assert from "node:assert/strict";
import { groupsOf, hereFirst, matching, speedup, table } from "../../lab/compare.ts";

const runs = (us: readonly number[]) => us.map((us) => ({ us, bytes: 4e6, flops: 8e6 }));

Deno.test("speed-up: the other side's time over this one's, block by block", () => {
  // The third block was disturbed on this side, the fifth on both.
  const here = runs([10, 11, 99, 10, 40, 10]);
  const there = runs([20, 22, 21, 19, 80, 21]);
  const { ratio, low, high } = speedup({ name: "a", here, there });
  assert.ok(Math.abs(ratio - 2) < 1e-9);
  assert.ok(Math.abs((low ?? NaN) - 21 / 99) < 1e-9 && Math.abs((high ?? NaN) - 2.1) < 1e-9);
});

Deno.test("the sides take turns at being first", () => {
  assert.deepEqual([0, 1, 2, 3].map(hereFirst), [true, false, true, false]);
});

Deno.test("cases are chosen by any part of their names", () => {
  const cases = ["matmul/o/1", "matmul/down/1", "choose/greedy/8"];
  assert.deepEqual(matching(cases, []), cases);
  assert.deepEqual(matching(cases, ["down", "choose"]), cases.slice(1));
  assert.deepEqual(matching(cases, ["nothing"]), []);
  assert.deepEqual(groupsOf(["a/b/1", "a/c/1", "d/1"]), ["a/", "d/"]);
});

Deno.test("the table: alone, and against another checkout", () => {
  const row = { name: "matmul/o/1", here: runs([2, 1, 3]), there: [] };
  assert.match(table([row], undefined), /\| matmul\/o\/1 \| 2.0 \| 2000 \| +4000 \|/);
  const both = table([{ ...row, there: runs([4, 2, 6]) }], "main");
  assert.match(both, /\| case +\| +us \| us main \| speed-up \[95 %\] \|/);
  assert.match(both, /\| matmul\/o\/1 \| 2.0 \| +4.0 \| +2.00x \|/);
});
