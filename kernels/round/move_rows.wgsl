// Moves rows of floats, as `move` says:
//   copy     out[r, OUT_FIRST + c] = x[r, c]
//   gather   out[r, OUT_FIRST + c] = x[index[r], c]
//   scatter  out[index[r], c] = x[r, c]
// Rows whose index is 0xffffffff are left alone.
//
// One invocation per element.

override COLS: u32;
//#if move == copy
override OUT_COLS: u32; // row stride of out
override OUT_FIRST: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    out[id.y * OUT_COLS + OUT_FIRST + id.x] = x[id.y * COLS + id.x];
  }
}
//#else if move == gather
override OUT_COLS: u32; // row stride of out
override OUT_FIRST: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>; // [.., COLS]
@group(0) @binding(1) var<storage, read> index: array<u32>; // [rows]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let source = index[id.y];
  if (id.x < COLS && source != 0xffffffffu) {
    out[id.y * OUT_COLS + OUT_FIRST + id.x] = x[source * COLS + id.x];
  }
}
//#else

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read> index: array<u32>; // [rows]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [.., COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let to = index[id.y];
  if (id.x < COLS && to != 0xffffffffu) {
    out[to * COLS + id.x] = x[id.y * COLS + id.x];
  }
}
//#endif
