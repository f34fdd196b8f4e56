import assert from "node:assert/strict";
import { link } from "../../src/gpu/link.ts";

const lines = (...text: readonly string[]) => text.map((line) => `${line}\n`).join("");

/** The lines of `code` that are not empty. */
const filled = (code: string) => code.split("\n").filter((line) => line !== "");

Deno.test("link: a fragment goes where its line is, with what it uses itself before it", () => {
  const texts = {
    "room/main": lines("// head", "//use room/a", "", "main"),
    "room/a": lines("// a", "//use other/b", "a"),
    "other/b": lines("b"),
  };
  assert.deepEqual(filled(link("room/main", texts)), ["// head", "// a", "b", "a", "main"]);
});

Deno.test("link: a fragment that several use goes in once, before the first of them", () => {
  const texts = {
    "r/main": lines("//use r/left", "//use r/right", "//use r/base", "main"),
    "r/left": lines("//use r/base", "left"),
    "r/right": lines("//use r/base", "right"),
    "r/base": lines("base"),
  };
  assert.deepEqual(filled(link("r/main", texts)), ["base", "left", "right", "main"]);
});

Deno.test("link: a name without a slash is a slot, in fragments too", () => {
  const texts = {
    "r/main": lines("//use outer", "main"),
    "r/q8": lines("//use inner", "q8"),
    "r/q4": lines("q4"),
    "r/x": lines("x"),
  };
  const slots = { outer: "r/q8", inner: "r/x" };
  assert.deepEqual(filled(link("r/main", texts, slots)), ["x", "q8", "main"]);
  assert.deepEqual(filled(link("r/main", texts, { outer: "r/q4" })), ["q4", "main"]);
  const both = { "r/main": lines("//use a", "//use b"), "r/x": lines("x") };
  assert.deepEqual(filled(link("r/main", both, { a: "r/x", b: "r/x" })), ["x"]);
});

Deno.test("link: a fragment is indented like the line that uses it", () => {
  const texts = {
    "r/main": lines("fn f() {", "  //use r/body", "}"),
    "r/body": lines("a {", "  b", "", "}"),
  };
  assert.equal(link("r/main", texts), lines("fn f() {", "  a {", "    b", "", "  }", "}"));
});

Deno.test("link: what is no use line stays; dollars are no patterns", () => {
  const code = lines("// use r/a", "x //use r/a", "//use r/a and more", "//user r/a", "a$1 $& $$");
  assert.equal(link("r/main", { "r/main": code, "r/a": "a" }), code);
  const texts = { "r/main": "//use r/a", "r/a": "$& $1 $$" };
  assert.equal(link("r/main", texts), "$& $1 $$");
});

Deno.test("link: unknown files and slots are errors that name the user and the used", () => {
  assert.throws(() => link("r/none", {}), /^Error: \/\/use r\/none: no such file$/);
  const texts = { "r/main": "//use r/a", "r/a": "//use r/gone" };
  assert.throws(() => link("r/main", texts), /^Error: r\/a\.wgsl: \/\/use r\/gone: no such file$/);
  const slot = { "r/main": "//use weights" };
  assert.throws(
    () => link("r/main", slot),
    /^Error: r\/main\.wgsl: \/\/use weights: no such slot$/,
  );
  const wrong = { weights: "r/gone" };
  assert.throws(() => link("r/main", slot, wrong), /r\/main\.wgsl: \/\/use r\/gone: no such file/);
  const inherited = { "r/main": "//use toString" };
  assert.throws(() => link("r/main", inherited), /toString: no such slot/);
});

Deno.test("link: a circle is an error that names its files", () => {
  const texts = {
    "r/main": "//use r/a",
    "r/a": "//use r/b",
    "r/b": "//use slot",
  };
  const circle = /^Error: r\/b\.wgsl: \/\/use r\/a: a circle, r\/main -> r\/a -> r\/b -> r\/a$/;
  assert.throws(() => link("r/main", texts, { slot: "r/a" }), circle);
  assert.throws(() => link("r/b", texts, { slot: "r/b" }), /r\/b -> r\/b/);
});
