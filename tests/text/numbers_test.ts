import assert from "node:assert/strict";
import { bytesText, percentText } from "../../src/text/numbers.ts";

Deno.test("bytes for people", () => {
  const cases: [number, string][] = [
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.0 kB"],
    [99_949, "99.9 kB"],
    [99_950, "100 kB"],
    [999_499, "999 kB"],
    [999_500, "1.0 MB"],
    [2.5e9, "2.5 GB"],
    [4e15, "4000 TB"],
  ];
  for (const [bytes, text] of cases) assert.equal(bytesText(bytes), text);
});

Deno.test("a share for people", () => {
  assert.equal(percentText(0.5), "50.0%");
  assert.equal(percentText(1 / 3, 2), "33.33%");
});
