import assert from "node:assert/strict";
import { nearest } from "../../src/hub/nearby.ts";

const KNOWN = ["Qwen/Qwen3-4B", "Qwen/Qwen3-8B-Base", "org/Llama-3.2-1B-Instruct", "org/tiny"];

Deno.test("the nearest names: slips, another case, another or no organisation, a beginning", () => {
  const cases: [string, string[]][] = [
    ["Qwen/Qwen3-4C", ["Qwen/Qwen3-4B"]],
    ["qwen/qwen3-4b", ["Qwen/Qwen3-4B"]],
    ["Qwen3-4B", ["Qwen/Qwen3-4B"]],
    ["alibaba/Qwen3-4B", ["Qwen/Qwen3-4B"]],
    ["Qwen/Qwen3-8B", ["Qwen/Qwen3-8B-Base"]],
    ["meta/llama-3.2-1b", ["org/Llama-3.2-1B-Instruct"]],
    ["Qwen/Qwen3", ["Qwen/Qwen3-4B", "Qwen/Qwen3-8B-Base"]],
    ["org/tony", ["org/tiny"]],
    ["org/boat", []],
    ["", []],
  ];
  for (const [typed, names] of cases) assert.deepEqual(nearest(typed, KNOWN), names, typed);
  assert.deepEqual(nearest("org/tiny", []), []);
});
