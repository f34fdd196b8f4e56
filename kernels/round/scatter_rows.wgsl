// out[index[r], c] = x[r, c]; rows with index 0xffffffff go nowhere.
//
// One invocation per element.

override COLS: u32;

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
