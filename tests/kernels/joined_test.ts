import assert from "node:assert/strict";
import { prefixed } from "../../kernels/joined.ts";

const TEXT = `override COLS: u32;
alias Word = u32;
const TWICE = 2u;
struct Row {
  scales: Word, // as the binding
  x: array<Word, TWICE>,
}
@group(0) @binding(0) var<storage, read> scales: array<Row>;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
var<workgroup> kept: array<u32, COLS>;
fn first(row: Row) -> Word {
  return row.scales + row.x[0] + TWICE;
}

@compute @workgroup_size(COLS * TWICE)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  kept[thread] = first(scales[tile.x]);
  x[thread] = kept[thread];
}
`;

Deno.test("a kernel's text gets prefixes: what it declares, but no members, and not what it is given", () => {
  const { code, size } = prefixed(TEXT, "b_");
  assert.equal(size, "b_COLS * b_TWICE");
  assert.equal(
    code,
    `override b_COLS: u32;
alias b_Word = u32;
const b_TWICE = 2u;
struct b_Row {
  scales: b_Word, // as the binding
  x: array<b_Word, b_TWICE>,
}
@group(0) @binding(0) var<storage, read> b_scales: array<b_Row>;
@group(0) @binding(1) var<storage, read_write> b_x: array<u32>;
var<workgroup> b_kept: array<u32, b_COLS>;
fn b_first(row: b_Row) -> b_Word {
  return row.scales + row.x[0] + b_TWICE;
}

fn b_main(tile: vec3<u32>, thread: u32) {
  b_kept[thread] = b_first(b_scales[tile.x]);
  b_x[thread] = b_kept[thread];
}
`,
  );
});

Deno.test("a text without an entry point is not joined", () => {
  assert.throws(() => prefixed("fn other() {}\n", "a_"), /a_: no entry point to join/);
});
