// out[r, c] = silu(x[r, c]) * x[r, COLS + c], or gelu in the place of silu: gates first, what they let through behind.
//
// One invocation per element.

//#import lib/gate

override COLS: u32; // of out

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, 2 COLS]
@group(0) @binding(1) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    let at = id.y * 2u * COLS + id.x;
    out[id.y * COLS + id.x] = gated(vec2<f32>(x[at], x[at + COLS]));
  }
}
