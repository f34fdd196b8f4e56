import assert from "node:assert/strict";
import { wrapNote } from "../../../src/cli/terminal/wrap.ts";

Deno.test("notes: rows go on below their second column, narrow terminals drop it", () => {
  const help = "/set NAME VALUE  one two three four\n/bye             leave";
  assert.equal(wrapNote(help, 80), help);
  assert.equal(
    wrapNote(help, 34),
    "/set NAME VALUE  one two three\n                 four\n/bye             leave",
  );
  assert.equal(
    wrapNote(help, 20),
    "/set NAME VALUE  one\ntwo three four\n/bye            \nleave".replace(/ +\n/, "\n"),
  );
});

Deno.test("notes: sentences and indented lines", () => {
  assert.equal(
    wrapNote("one two three\n\n  four five six\n", 10),
    "one two\nthree\n\n  four\n  five six\n",
  );
  assert.equal(wrapNote("日本語の文章です", 10), "日本語の文\n章です");
});
