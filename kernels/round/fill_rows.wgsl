// out[r, c] = values[c]: a bias, put where the matmul then adds.
//
// One invocation per element.

override COLS: u32;

@group(0) @binding(0) var<storage, read> values: array<f32>; // [COLS]
@group(0) @binding(1) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    out[id.y * COLS + id.x] = values[id.x];
  }
}
