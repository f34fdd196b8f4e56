// out[r, c] = f(x[r, c])
//
// One invocation per element.

//#if f == cap
//#import lib/soft_cap

fn mapped(number: f32) -> f32 {
  return capped(vec4<f32>(number, 0.0, 0.0, 0.0)).x;
}
//#else if f == scale
override BY: f32;

fn mapped(number: f32) -> f32 {
  return BY * number;
}
//#endif

override COLS: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    let at = id.y * COLS + id.x;
    out[at] = mapped(x[at]);
  }
}
