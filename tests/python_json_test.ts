import assert from "node:assert/strict";
import { parsePythonJson } from "../src/python_json.ts";

Deno.test("numbers of Python that JSON does not have become texts, and texts stay", () => {
  const text = '{"limit": [0.0, Infinity, -Infinity], "NaN": NaN, "a": "\\"Infinity", "b": 1e3}';
  assert.deepEqual(parsePythonJson(text), {
    limit: [0, "Infinity", "-Infinity"],
    NaN: "NaN",
    a: '"Infinity',
    b: 1000,
  });
  assert.deepEqual(parsePythonJson('["NaN"]'), ["NaN"]);
});

Deno.test("what is no JSON either way is an error", () => {
  for (const text of ["", "{", '{"a": NaN', "[Infinite]", '["a\nInfinity"]', "[--Infinity]"]) {
    assert.throws(() => parsePythonJson(text), SyntaxError, text);
  }
});
