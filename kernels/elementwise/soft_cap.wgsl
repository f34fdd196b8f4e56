// out[r, c] = CAP tanh(x[r, c] / CAP)
//
// One invocation per element.

//#import lib/soft_cap

override COLS: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    let at = id.y * COLS + id.x;
    out[at] = capped(vec4<f32>(x[at], 0.0, 0.0, 0.0)).x;
  }
}
