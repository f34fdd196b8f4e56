import assert from "node:assert/strict";
import { defined } from "../src/defined.ts";

Deno.test("only undefined fields are left out", () => {
  const given: { a?: number; b: null; c: boolean; d: string; e: undefined } = {
    a: 0,
    b: null,
    c: false,
    d: "",
    e: undefined,
  };
  assert.deepEqual(defined(given), { a: 0, b: null, c: false, d: "" });
  assert.deepEqual(Object.keys(defined({ x: undefined })), []);
});
