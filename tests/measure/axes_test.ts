import { deepEqual, equal } from "node:assert/strict";
import { combinations, parseAxis } from "../../src/measure/axes.ts";

Deno.test("parseAxis: lists and ranges", () => {
  const cases: [string, readonly number[] | undefined][] = [
    ["1", [1]],
    ["1,2,4", [1, 2, 4]],
    ["1-4", [1, 2, 3, 4]],
    ["0-7", [0, 1, 2, 3, 4, 5, 6, 7]],
    ["8,1-3", [8, 1, 2, 3]],
    ["1-7+2", [1, 3, 5, 7]],
    ["1-20*2", [1, 2, 4, 8, 16]],
    ["0,0.7,.5", [0, 0.7, 0.5]],
    [" 1 , 2 ", [1, 2]],
    ["0.8,0.8", [0.8, 0.8]],
    ["3-3", [3]],
    ["", undefined],
    ["1,", undefined],
    ["4-1", undefined],
    ["1-4*1", undefined],
    ["1-4+0", undefined],
    ["0-4*2", undefined],
    ["0-1000000", undefined],
    ["-1", undefined],
    ["1e3", undefined],
    ["0.1-0.3", undefined],
    ["a", undefined],
  ];
  for (const [text, values] of cases) deepEqual(parseAxis(text), values, text);
});

Deno.test("combinations: the last axis changes fastest, doubles count once", () => {
  deepEqual(combinations<{ a: number; b: string }>({ a: [1, 2, 1], b: ["x", "y"] }), [
    { a: 1, b: "x" },
    { a: 1, b: "y" },
    { a: 2, b: "x" },
    { a: 2, b: "y" },
  ]);
  equal(combinations({ a: [1], b: [] }).length, 0);
});
