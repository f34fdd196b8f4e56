import assert from "node:assert/strict";
import { expand } from "../../src/gpu/expand.ts";

const lines = (...text: readonly string[]) => text.join("\n");

Deno.test("expand: a block is repeated and its variable counts up", () => {
  const code = lines("a", "  //for r in ROWS", "  let x$r = y[$ru];", "  //end", "b");
  const expected = lines("a", "  let x0 = y[0u];", "  let x1 = y[1u];", "b");
  assert.equal(expand(code, { ROWS: 2 }), expected);
});

Deno.test("expand: blocks nest, and the outer variable is known inside", () => {
  const code = lines("//for i in N", "{", "//for j in M", "x$i$j", "//end", "}", "//end");
  const expected = lines("{", "x00", "x01", "x02", "}", "{", "x10", "x11", "x12", "}");
  assert.equal(expand(code, { N: 2, M: 3 }), expected);
});

Deno.test("expand: blocks follow one another; counts stand in the text too", () => {
  const code = lines("var a: array<f32, $N>;", "//for i in N", "a$i", "//end", "//for i in N");
  const expected = lines("var a: array<f32, 2>;", "a0", "a1", "b0u 2u", "b1u 2u");
  assert.equal(expand(lines(code, "b$iu $Nu", "//end"), { N: 2 }), expected);
});

Deno.test("expand: a count of 0 leaves nothing, one of 11 is written out", () => {
  assert.equal(expand(lines("a", "//for i in N", "x$i", "//end", "b"), { N: 0 }), "a\nb");
  const eleven = expand(lines("//for i in N", "x$i", "//end"), { N: 11 });
  assert.equal(eleven.split("\n").at(-1), "x10");
});

Deno.test("expand: text without blocks comes out as it was", () => {
  const code = lines("// for i in N is no mark", "x = 1; //end of line", "");
  assert.equal(expand(code, { N: 3 }), code);
});

Deno.test("expand: unbalanced blocks and unknown counts are errors", () => {
  assert.throws(() => expand(lines("//for i in N", "x"), { N: 1 }), /\/\/for without \/\/end/);
  assert.throws(() => expand(lines("x", "//end"), { N: 1 }), /\/\/end without \/\/for/);
  const extra = lines("//for i in N", "x", "//end", "//end");
  assert.throws(() => expand(extra, { N: 1 }), /\/\/end without \/\/for/);
  const inner = lines("//for i in N", "//for j in N", "x", "//end");
  assert.throws(() => expand(inner, { N: 1 }), /\/\/for without \/\/end/);
  const unknown = lines("//for i in ROWS", "x", "//end");
  assert.throws(() => expand(unknown, { N: 1 }), /\/\/for i in ROWS: no such count/);
});

Deno.test("expand: an expression has the value of its variables, counts and numbers", () => {
  const code = lines(
    "//for i in N",
    "//for j in M",
    "a$(i * M + j)_$(2 * i + 1)",
    "//end",
    "//end",
  );
  const expected = lines("a0_1", "a1_1", "a2_1", "a3_3", "a4_3", "a5_3", "6u");
  assert.equal(expand(lines(code, "$(N * M)u"), { N: 2, M: 3 }), expected);
});

Deno.test("expand: an expression replaces whole names only, and knows them all", () => {
  const code = lines("//for r in N", "$(r + rows)", "//end");
  assert.equal(expand(code, { N: 2, rows: 7 }), lines("7", "8"));
  assert.throws(() => expand(code, { N: 1 }), /\$\(0 \+ rows\): no such count/);
});
