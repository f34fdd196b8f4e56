import { deepEqual, equal, throws } from "node:assert/strict";
import { workgroupMemory, workgroupVariables } from "../../src/gpu/workgroup.ts";

function read(code: string, constants: Readonly<Record<string, number>> = {}) {
  return workgroupVariables({ kernel: { code }, constants });
}

/** Bytes of one variable of a type, after other declarations. */
function bytesOf(type: string, before = "", constants = {}): number | undefined {
  return read(`${before}\nvar<workgroup> one: ${type};`, constants)[0]?.bytes;
}

Deno.test("workgroup memory: types have the sizes and alignments of WGSL", () => {
  const sizes = {
    "u32": 4,
    "atomic<u32>": 4,
    "vec2<f16>": 4,
    "vec3<u32>": 12,
    "vec4<f32>": 16,
    "array<vec3<f32>, 5>": 80,
    "array<array<vec2<f32>, 3>, 4>": 96,
    "array<atomic<u32>, 7u>": 28,
  };
  for (const [type, size] of Object.entries(sizes)) equal(bytesOf(type), size, type);
  const structs = `struct Kept {
  first: u32, // of all
  at: vec2<f32>,
  last: array<u32, 3>
}
alias Sum = vec2<f32>;
struct Both {
  kept: Kept,
  sum: Sum,
}`;
  equal(bytesOf("Kept", structs), 32);
  equal(bytesOf("Sum", structs), 8);
  equal(bytesOf("array<Both, 2>", structs), 80);
});

Deno.test("workgroup memory: lengths are expressions of constants, overrides and numbers", () => {
  const constants = `const ROWS: u32 = 6u;
override LANES: u32 = 16u;
override GROUPS: u32;
const ALL = (LANES + 1u) * GROUPS; // with a padding
const ODD = ROWS | 1u;`;
  const lengths = {
    "ROWS * 2u": 12,
    "LANES / 3u": 5,
    "GROUPS - 1u - 2u": 1,
    "ALL": 68,
    "2 + ODD % 4u * 2u": 8,
    "(ROWS + 2u) / (1u + 1u)": 4,
  };
  for (const [length, count] of Object.entries(lengths)) {
    equal(bytesOf(`array<f32, ${length}>`, constants, { GROUPS: 4 }), 4 * count, length);
  }
  equal(bytesOf("array<f32, LANES>", constants, { LANES: 2 }), 8);
});

Deno.test("workgroup memory: all variables of a module, each in whole 16 bytes", () => {
  const code = `enable f16;
// var<workgroup> not: u32;
var<workgroup> a: array<f32,
  5>;
@group(0) @binding(0) var<storage, read> b: array<f32>;
var<workgroup> c: array<vec4<f32>, N>; // of all
const N = 3u;
fn main() {
  var d = 0u;
}`;
  const variables = read(code);
  deepEqual(variables, [
    { name: "a", of: "f32", count: 5, literal: true, bytes: 20 },
    { name: "c", of: "vec4<f32>", count: 3, literal: false, bytes: 48 },
  ]);
  equal(workgroupMemory({ kernel: { code }, constants: {} }), 80);
  equal(workgroupMemory({ kernel: { code: "fn main() {}" }, constants: {} }), 0);
});

Deno.test("workgroup memory: what it does not know is told", () => {
  throws(() => bytesOf("mat4x4<f32>"), /size of the WGSL type "mat4x4<f32>"/);
  throws(() => bytesOf("array<f32, OTHER>"), /value of "OTHER"/);
  throws(() => bytesOf("array<f32, 2u ^ 3u>"), /value of "2u\^3u"/);
});
