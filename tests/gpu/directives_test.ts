import assert from "node:assert/strict";
import { expander, type KernelParameters } from "../../src/gpu/directives.ts";

const lines = (...text: readonly string[]) => text.map((line) => `${line}\n`).join("");

/** What `code` becomes, as a file without imports. */
function expanded(code: string, parameters: KernelParameters = {}): string {
  return expander((path) => path === "r/main" ? code : undefined)("r/main", parameters);
}

/** The lines that are not empty of what the first of some files becomes. */
function imported(
  files: Readonly<Record<string, string>>,
  parameters: KernelParameters = {},
): string[] {
  const texts = (path: string) => Object.hasOwn(files, path) ? files[path] : undefined;
  const [main = ""] = Object.keys(files);
  return expander(texts)(main, parameters).split("\n").filter((line) => line !== "");
}

Deno.test("import: a file goes where its line is, with what it imports itself before it", () => {
  const files = {
    "room/main": lines("// head", "//#import room/a", "", "main"),
    "room/a": lines("// a", "//#import other/b", "a"),
    "other/b": lines("b"),
  };
  assert.deepEqual(imported(files), ["// head", "// a", "b", "a", "main"]);
});

Deno.test("import: a file that several import goes in once, before the first of them", () => {
  const files = {
    "r/main": lines("//#import r/left", "//#import r/right", "//#import r/base", "main"),
    "r/left": lines("//#import r/base", "left"),
    "r/right": lines("//#import r/base", "right"),
    "r/base": lines("base"),
  };
  assert.deepEqual(imported(files), ["base", "left", "right", "main"]);
});

Deno.test("import: statements go into a function each time, indented like the line", () => {
  const files = {
    "r/main": lines("fn f() {", "  //#import r/body", "    //#import r/body", "}"),
    "r/body": lines("a {", "  b", "", "}"),
  };
  const body = ["a {", "  b", "}"];
  const both = [...body.map((line) => `  ${line}`), ...body.map((line) => `    ${line}`)];
  assert.deepEqual(imported(files), ["fn f() {", ...both, "}"]);
});

Deno.test("import: a parameter chooses the file; one that is not taken is not imported", () => {
  const files = {
    "r/main": lines(
      "//#import r/w_$weights",
      "//#if OTHER",
      "//#import r/gone",
      "//#endif",
      "main",
    ),
    "r/w_q8": lines("q8"),
    "r/w_q4": lines("//#import r/w_q8", "q4"),
  };
  assert.deepEqual(imported(files, { weights: "q8", OTHER: false }), ["q8", "main"]);
  assert.deepEqual(imported(files, { weights: "q4", OTHER: false }), ["q8", "q4", "main"]);
  const gone = /^Error: r\/main\.wgsl: \/\/#import r\/gone: no such file$/;
  assert.throws(() => imported(files, { weights: "q8", OTHER: true }), gone);
});

Deno.test("import: unknown files and circles are errors that name the files", () => {
  assert.throws(() => imported({ "r/main": "//#import r/a", "r/a": "//#import r/gone" }), {
    message: "r/a.wgsl: //#import r/gone: no such file",
  });
  const circle = { "r/main": "//#import r/a", "r/a": "//#import r/b", "r/b": "//#import r/a" };
  assert.throws(() => imported(circle), {
    message: "r/b.wgsl: //#import r/a: a circle, r/main -> r/a -> r/b -> r/a",
  });
});

Deno.test("if: the first branch whose condition holds is taken", () => {
  const code = lines(
    "a",
    "//#if X",
    "x",
    "//#else if kind == q8",
    "q8",
    "//#else",
    "none",
    "//#endif",
  );
  assert.equal(expanded(code, { X: true, kind: "q8" }), "a\nx\n");
  assert.equal(expanded(code, { X: false, kind: "q8" }), "a\nq8\n");
  assert.equal(expanded(code, { X: 0, kind: "q4" }), "a\nnone\n");
  assert.equal(expanded(code, { X: 2, kind: "q4" }), "a\nx\n");
  const other = lines("//#if kind != q8", "other", "//#else", "q8", "//#endif");
  assert.equal(expanded(other, { kind: "q4" }), "other\n");
  assert.equal(expanded(other, { kind: "q8" }), "q8\n");
});

Deno.test("if: blocks nest, with negation, and a branch that is not taken asks for no parameters", () => {
  const code = lines(
    ...["//#if !X", "//#if Y", "y", "//#else", "n", "//#endif", "//#for i in N", "$i", "//#endfor"],
    ...["//#endif", "end"],
  );
  assert.equal(expanded(code, { X: true }), "end\n");
  assert.equal(expanded(code, { X: false, Y: true, N: 2 }), "y\n0\n1\nend\n");
  assert.throws(() => expanded(code, { X: false, Y: true }), {
    message: 'r/main.wgsl: no parameter "N"',
  });
  assert.throws(() => expanded(code), { message: 'r/main.wgsl: no parameter "X"' });
  assert.throws(() => expanded("//#if toString\n//#endif"), /no parameter "toString"/);
});

Deno.test("for: a block is repeated and its variable counts up", () => {
  const code = lines("a", "  //#for r in ROWS", "  let x$r = y[$ru];", "  //#endfor", "b");
  const expected = lines("a", "  let x0 = y[0u];", "  let x1 = y[1u];", "b");
  assert.equal(expanded(code, { ROWS: 2 }), expected);
  assert.equal(expanded(code, { ROWS: 0 }), "a\nb\n");
  assert.equal(expanded(lines("//#for i in 2", "$i", "//#endfor")), "0\n1\n");
  assert.match(expanded(code, { ROWS: 11 }), /x10 = y\[10u\];\nb\n$/);
});

Deno.test("for: blocks nest and follow one another, the outer variable is known inside", () => {
  const code = lines(
    ...["//#for i in N", "{", "//#for j in M", "x$i$j", "//#endfor", "}", "//#endfor"],
    ...["var a: array<f32, $N>;", "//#for i in N", "b$iu $Nu", "//#endfor"],
  );
  const nested = ["{", "x00", "x01", "x02", "}", "{", "x10", "x11", "x12", "}"];
  assert.equal(
    expanded(code, { N: 2, M: 3 }),
    lines(...nested, "var a: array<f32, 2>;", "b0u 2u", "b1u 2u"),
  );
});

Deno.test("an expression has the value of its variables, parameters and numbers", () => {
  const code = lines(
    ...["//#for i in N", "//#for j in M", "a$(i * M + j)_$(2 * i + 1)", "//#endfor", "//#endfor"],
    "$(N * M)u",
  );
  const expected = lines("a0_1", "a1_1", "a2_1", "a3_3", "a4_3", "a5_3", "6u");
  assert.equal(expanded(code, { N: 2, M: 3 }), expected);
  const whole = lines("//#for r in N", "$(r + rows)", "//#endfor");
  assert.equal(expanded(whole, { N: 2, rows: 7 }), lines("7", "8"));
  assert.throws(() => expanded(whole, { N: 1 }), /no parameter "rows"/);
  assert.equal(expanded("$Xu $Yu", { X: true, Y: false }), "1u 0u\n");
  assert.throws(() => expanded("$N", {}), /no parameter "N"/);
  assert.throws(
    () => expanded("$(2 * weights)", { weights: "q8" }),
    /\$\(2 \* weights\): not a number/,
  );
});

Deno.test("what is no directive stays, dollars are no patterns", () => {
  const code = lines(
    "// #for i in N is none",
    "x = 1; //#endfor of a line",
    "a$1 $& $$",
    "//#",
    "x; // of $N rows",
  );
  assert.equal(expanded(code), code);
  assert.deepEqual(imported({ "r/main": "//#import r/a", "r/a": "$& $1 $$" }), ["$& $1 $$"]);
});

Deno.test("unbalanced blocks and unknown directives are errors with file and line", () => {
  const broken = [
    [lines("//#for i in N", "x"), "r/main.wgsl:3"],
    [lines("x", "//#endfor"), "r/main.wgsl:2"],
    [lines("//#if N", "x"), "r/main.wgsl:3"],
    [lines("x", "//#else"), "r/main.wgsl:2"],
    [lines("//#if N", "//#endfor"), "r/main.wgsl:2"],
    [lines("//#for i in N", "//#endif"), "r/main.wgsl:2"],
    [lines("//#if N", "//#else", "//#else", "//#endif"), "r/main.wgsl:3"],
  ] as const;
  for (const [code, place] of broken) {
    const message = `${place}: a block that is not closed, or not opened`;
    assert.throws(() => expanded(code, { N: 1 }), { message }, code);
  }
  assert.throws(() => expanded("//#use r/a"), {
    message: "r/main.wgsl: //#use: no such directive",
  });
});

Deno.test("a parameter that nothing names is an error, but one of a branch that is not taken", () => {
  const code = lines("//#if X", "//#for r in ROWS", "$r $(r * LANES)", "//#endfor", "//#endif");
  const parameters = { X: false, ROWS: 2, LANES: 4 };
  assert.equal(expanded(code, parameters), "\n");
  for (const name of ["ROW", "r_", "endif", "kind"]) {
    assert.throws(() => expanded(code, { ...parameters, [name]: 1 }), {
      message: `r/main.wgsl: nothing names the parameter "${name}"`,
    });
  }
  assert.throws(() => expanded("// of $N rows", { N: 1 }), /nothing names the parameter "N"/);
});

Deno.test("what imported files name counts as named, of those that the parameters choose", () => {
  const files = {
    "r/main": lines("//#if X", "//#import r/w_$weights", "//#import r/$other", "//#endif"),
    "r/w_q8": lines("//#import r/scales", "$q8"),
    "r/w_q4": lines("$Q4"),
    "r/scales": lines("//#if kind == f16", "//#else if FAST", "//#endif"),
  };
  const parameters = { X: false, weights: "q8", kind: "f32", FAST: true };
  assert.deepEqual(imported(files, parameters), []);
  assert.throws(() => imported(files, { ...parameters, Q4: 1 }), {
    message: 'r/main.wgsl: nothing names the parameter "Q4"',
  });
});

Deno.test("for: a count that is no whole number is an error", () => {
  const expand = expander(() => lines("//#for u in LOADS", "load $u", "//#endfor"));
  assert.match(expand("r/main", { LOADS: 2 }), /load 0\nload 1\n/);
  for (const LOADS of [0.5, -1, NaN]) {
    assert.throws(() => expand("r/main", { LOADS }), {
      message: `Cannot expand "r/main": #for u in LOADS, which is ${LOADS}`,
    });
  }
});
