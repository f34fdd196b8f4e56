import assert from "node:assert/strict";
import { link, withUniforms } from "../../src/gpu/wgsl.ts";

const MAIN = "@compute @workgroup_size(1) fn main() {}";

/** `code` as a part with the prefix "b_", without the entry point. */
function linked(code: string, given?: Record<string, string>): string {
  const part = link(`${code}\n${MAIN}`, { prefix: "b_", firstBinding: 32, ...given && { given } });
  return part.code.replace(/\nfn b_main\(\) \{\}$/, "");
}

function expectLinked(cases: readonly (readonly [code: string, expected: string])[]): void {
  for (const [code, expected] of cases) assert.equal(linked(code), expected);
}

Deno.test("names at module scope get the prefix where they are declared and used", () => {
  expectLinked([
    ["override COLS: u32 = 4;", "override b_COLS: u32 = 4;"],
    ["alias X = array<Y, N>;\nalias Y = u32;", "alias b_X = array<b_Y, N>;\nalias b_Y = u32;"],
    ["const A = 1u; const B = A + 2u * (A);", "const b_A = 1u; const b_B = b_A + 2u * (b_A);"],
    [
      "var<private> a: u32; fn f() -> u32 { return a; }",
      "var<private> b_a: u32; fn b_f() -> u32 { return b_a; }",
    ],
    [
      "fn f(x: T) -> T { return g(f(x)); } struct T { x: u32 }",
      "fn b_f(x: b_T) -> b_T { return g(b_f(x)); } struct b_T { x: u32 }",
    ],
    ["const N = 8u; const_assert N > 4u;", "const b_N = 8u; const_assert b_N > 4u;"],
  ]);
});

Deno.test("parameters and locals keep their names, also where something at module scope has the same", () => {
  expectLinked([
    [
      "const x = 1; fn f(x: u32) -> u32 { return x; }",
      "const b_x = 1; fn b_f(x: u32) -> u32 { return x; }",
    ],
    [
      "const x = 1; fn f(a: array<u32, x>) { let x = a[x]; g(x); }",
      "const b_x = 1; fn b_f(a: array<u32, b_x>) { let x = a[b_x]; g(x); }",
    ],
    [
      "const x = 1; fn f() { { var x = x; g(x); } g(x); }",
      "const b_x = 1; fn b_f() { { var x = b_x; g(x); } g(b_x); }",
    ],
    [
      "const i = 1; fn f() { for (var i = i; i < 4; i++) { g(i); } g(i); }",
      "const b_i = 1; fn b_f() { for (var i = b_i; i < 4; i++) { g(i); } g(b_i); }",
    ],
    [
      "const i = 1; fn f() { for (; i < 4;) { let i = 2; } if i < 4 { g(i); } }",
      "const b_i = 1; fn b_f() { for (; b_i < 4;) { let i = 2; } if b_i < 4 { g(b_i); } }",
    ],
    [
      "const i = 1; fn f() { loop { let i = 2; continuing { break if i > 1; } } g(i); }",
      "const b_i = 1; fn b_f() { loop { let i = 2; continuing { break if i > 1; } } g(b_i); }",
    ],
    [
      "const x = 1; fn f(x: u32) {} fn g() { f(x); }",
      "const b_x = 1; fn b_f(x: u32) {} fn b_g() { b_f(b_x); }",
    ],
    [
      "var<private> p: u32; fn f() { var<function> p: u32 = p; p += 1; }",
      "var<private> b_p: u32; fn b_f() { var<function> p: u32 = b_p; p += 1; }",
    ],
  ]);
});

Deno.test("members and swizzles keep their names, types of members do not", () => {
  expectLinked([
    [
      "struct S { f: S2, g: array<vec4<f32>, f2>, @size(f2) h: f32, } fn f() {} const f2 = 16; struct S2 { x: f32 }",
      "struct b_S { f: b_S2, g: array<vec4<f32>, b_f2>, @size(b_f2) h: f32, } fn b_f() {} const b_f2 = 16; struct b_S2 { x: f32 }",
    ],
    [
      "const x = 0; fn f() { let v = vec2(0.5, 1.); a.x = v.yx.x + c[x].x . x; }",
      "const b_x = 0; fn b_f() { let v = vec2(0.5, 1.); a.x = v.yx.x + c[b_x].x . x; }",
    ],
  ]);
});

Deno.test("comments, attributes and directives keep their words", () => {
  expectLinked([
    [
      'const x = 1; // x\n/* x\nx */ const y = x; // "x"',
      'const b_x = 1; // x\n/* x\nx */ const b_y = b_x; // "x"',
    ],
    [
      "enable f16;\ndiagnostic(off, f);\nfn f(@builtin(position) position: vec4<f32>) {} fn position() {}",
      "enable f16;\ndiagnostic(off, f);\nfn b_f(@builtin(position) position: vec4<f32>) {} fn b_position() {}",
    ],
    [
      "const n = 2; fn f() { @diagnostic(off, n) if (n > 1) { @n switch n { case n: {} default: {} } } }",
      "const b_n = 2; fn b_f() { @diagnostic(off, n) if (b_n > 1) { @n switch b_n { case b_n: {} default: {} } } }",
    ],
  ]);
});

Deno.test("bindings are numbered from the first of the part", () => {
  expectLinked([[
    "@group(0) @binding(3) var<storage, read> x: array<u32>;\n@binding(14) @group(0) var<storage> y: array<u32>;",
    "@group(0) @binding(35) var<storage, read> b_x: array<u32>;\n@binding(46) @group(0) var<storage> b_y: array<u32>;",
  ]]);
});

Deno.test("what another part gives has that part's name, and its own declaration is left out", () => {
  const code =
    `@group(0) @binding(13) var<storage, read_write> handoff: array<atomic<u32>>; // words
fn f(thread: u32) { make_again(thread); atomicLoad(&handoff[0]); }
fn g(handoff: u32) -> u32 { return handoff; }`;
  assert.equal(
    linked(code, { handoff: "a_out", make_again: "b_make_again" }),
    `// words
fn b_f(thread: u32) { b_make_again(thread); atomicLoad(&a_out[0]); }
fn b_g(handoff: u32) -> u32 { return handoff; }`,
  );
});

Deno.test("an entry point becomes a function, of which all that its attributes said is returned", () => {
  const code = `override LANES: u32;
const GROUPS = 2u;

@compute @workgroup_size(LANES * GROUPS, 1)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  main_of(tile, thread);
}
`;
  assert.deepEqual(link(code, { prefix: "a_", firstBinding: 0 }), {
    code: `override a_LANES: u32;
const a_GROUPS = 2u;

fn a_main(
  tile: vec3<u32>,
  thread: u32,
) {
  main_of(tile, thread);
}
`,
    entry: {
      workgroupSize: "a_LANES * a_GROUPS, 1",
      builtins: ["workgroup_id", "local_invocation_index"],
    },
  });
});

Deno.test("a module that cannot be a part is an error", () => {
  const of = { prefix: "a_", firstBinding: 0 };
  assert.throws(() => link("fn other() {}\n", of), {
    message: 'Cannot link "a_": the module has no entry point',
  });
  assert.throws(() => link(`const x = 1; fn f() { let a_x = x; } ${MAIN}`, of), {
    message: 'Cannot link "a_x": the module has that name already',
  });
  assert.throws(() => link(`${MAIN} const x = 1`, of), {
    message: "Cannot read WGSL: it ends too early",
  });
  assert.throws(() => link(`${MAIN} fn f() { if (x) {`, of), /it ends too early/);
  assert.throws(() => link(`${MAIN} function f() {}`, of), {
    message: 'Cannot read WGSL "function": a declaration is expected',
  });
  assert.throws(() => link(`fn f(x u32) {} ${MAIN}`, of), {
    message: 'Cannot read WGSL "u32": ":" is expected',
  });
});

Deno.test("uniforms: constants that no size depends on are read from a buffer, by their scopes", () => {
  const { code, constants } = withUniforms(`enable f16;
override COLS: u32; // of a row
override LANES: u32;
override EPS: f32;
override HALF: u32 = LANES / 2u;
override PARTS: u32;
override FLAG: bool;
var<workgroup> sums: array<f32, PARTS>;
struct Row { COLS: u32 }
fn other(COLS: u32) -> u32 {
  return COLS + 1u;
}
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let at = tile.x * COLS + Row(COLS).COLS + other(COLS);
  if (f32(at) > EPS && FLAG) {
    sums[at % PARTS] = f32(HALF);
  }
}
`);
  assert.deepEqual(constants, [{ name: "COLS", type: "u32" }, { name: "EPS", type: "f32" }]);
  assert.equal(
    code,
    `enable f16;
 // of a row
override LANES: u32;

override HALF: u32 = LANES / 2u;
override PARTS: u32;
override FLAG: bool;
var<workgroup> sums: array<f32, PARTS>;
struct Row { COLS: u32 }
fn other(COLS: u32) -> u32 {
  return COLS + 1u;
}
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let at = tile.x * constants_.COLS + Row(constants_.COLS).COLS + other(constants_.COLS);
  if (f32(at) > constants_.EPS && FLAG) {
    sums[at % PARTS] = f32(HALF);
  }
}
struct Constants_ {
  COLS: u32,
  EPS: f32,
}
@group(1) @binding(0) var<uniform> constants_: Constants_;
`,
  );
});

Deno.test("uniforms: a module without such constants stays as it is", () => {
  const code = "override LANES: u32;\n@compute @workgroup_size(LANES)\nfn main() {}\n";
  assert.deepEqual(withUniforms(code), { code, constants: [] });
});
